package dev.nereid.server.request;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/** Checks that a tensor of byte strings has as many strings as its shape. */
final class BytesFraming {
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final int LENGTH_BYTES = Integer.BYTES;

    private BytesFraming() {}

    /**
     * Walks over the strings. A string that reaches beyond the end of the data is refused, unlike by the reference:
     * native code must not see such a length.
     *
     * @param data memory that Java code may read
     * @param expected the number of strings
     */
    static void check(String id, String input, String model, MemorySegment data, long expected) {
        long size = data.byteSize();
        long position = 0;
        long strings = 0;
        while (position < size) {
            long available = size - position;
            if (available < LENGTH_BYTES) {
                throw RequestErrors.cutLength(id, input, model, available);
            }
            if (strings == expected) {
                throw RequestErrors.tooManyStrings(id, input, model, expected);
            }
            strings++;
            long length = Integer.toUnsignedLong(data.get(LENGTH, position));
            if (length > available - LENGTH_BYTES) {
                throw RequestErrors.cutString(id, input, model, length, available - LENGTH_BYTES);
            }
            position += LENGTH_BYTES + length;
        }
        if (strings != expected) {
            throw RequestErrors.tooFewStrings(id, input, model, expected, strings);
        }
    }
}
