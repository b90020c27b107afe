package dev.nereid.grpc.wire;

/**
 * A range of bytes of a message. Immutable.
 *
 * @param start the offset of its first byte in the message
 */
record ByteRange(int start, int length) {}
