package dev.nereid.backend.natives;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Format of strings in the server's tensors: each is its length in 4 bytes, little-endian, then bytes. Stateless. */
public final class SerializedStrings {
    /** The length before each string. */
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    public static final long LENGTH_BYTES = LENGTH.byteSize();

    private static final long MAX_LENGTH = 0xffff_ffffL;

    private SerializedStrings() {}

    /**
     * Returns the length of string {@code index} of {@code count} strings.
     *
     * @param offset where it begins, with its length
     * @throws IllegalArgumentException if {@code source} ends before the string does
     */
    public static long lengthAt(MemorySegment source, long offset, long index, long count) {
        long left = source.byteSize() - offset - LENGTH_BYTES;
        long length = left < 0 ? 0 : Integer.toUnsignedLong(source.get(LENGTH, offset));
        if (length > left) {
            throw new IllegalArgumentException(
                    "strings: end within string " + index + " (expected: " + count + " strings)");
        }
        return length;
    }

    /** Throws {@link IllegalArgumentException} if more follows {@code end}, the end of the last of the strings. */
    public static void requireEnd(MemorySegment source, long end, long count) {
        if (end != source.byteSize()) {
            throw new IllegalArgumentException(
                    "strings: " + source.byteSize() + " bytes (expected: " + end + " for " + count + " strings)");
        }
    }

    /** Writes the length of a string; throws {@link IllegalArgumentException} if it does not fit in 4 bytes. */
    public static void putLength(MemorySegment target, long offset, long length) {
        if (length > MAX_LENGTH) {
            throw new IllegalArgumentException("string: " + length + " bytes (expected: <= " + MAX_LENGTH + ")");
        }
        target.set(LENGTH, offset, (int) length);
    }
}
