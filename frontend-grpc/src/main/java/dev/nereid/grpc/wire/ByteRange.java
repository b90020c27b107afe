package dev.nereid.grpc.wire;

/** A range of bytes, by the offset of its first byte in the message. Immutable. */
record ByteRange(int start, int length) {}
