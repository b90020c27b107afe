package dev.nereid.grpc.wire;

/**
 * A range of bytes of a message. Immutable.
 *
 * @param start the offset of its first byte in the message
 * @param length its number of bytes
 */
record ByteRange(int start, int length) {}
