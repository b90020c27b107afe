package dev.nereid.backend.onnx.ort;

import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;

/**
 * Copies strings between ONNX Runtime's tensors and length-prefixed memory. Each string is its length in 4 bytes,
 * little-endian, and then its bytes. The bytes are arbitrary: no encoding is assumed, and zeros may occur. Stateless.
 */
final class OrtStrings {
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final long LENGTH_BYTES = LENGTH.byteSize();
    private static final long MAX_LENGTH = 0xffff_ffffL;

    private OrtStrings() {}

    /**
     * Writes the {@code count} strings in {@code source} into the string tensor {@code value}.
     *
     * @throws IllegalArgumentException if {@code source} holds fewer or more strings
     */
    static void fill(OrtApi api, long value, long count, MemorySegment source, OrtScratch scratch) throws OrtException {
        long offset = 0;
        for (long i = 0; i < count; i++) {
            long length = lengthAt(source, offset, i, count);
            offset += LENGTH_BYTES;
            api.call(OrtFunction.GetResizedStringTensorElementBuffer, value, i, length, scratch.resultAddress(0));
            MemorySegment.copy(source, offset, memory(scratch.result(0), length), 0, length);
            offset += length;
        }
        if (offset != source.byteSize()) {
            throw new IllegalArgumentException(
                    "strings: " + source.byteSize() + " bytes (expected: " + offset + " for " + count + " strings)");
        }
    }

    private static long lengthAt(MemorySegment source, long offset, long index, long count) {
        long left = source.byteSize() - offset - LENGTH_BYTES;
        long length = left < 0 ? 0 : Integer.toUnsignedLong(source.get(LENGTH, offset));
        if (length > left) {
            throw new IllegalArgumentException(
                    "strings: end within string " + index + " (expected: " + count + " strings)");
        }
        return length;
    }

    /** Returns the bytes that {@link #copy} needs for the {@code count} strings in the tensor {@code value}. */
    static long byteSize(OrtApi api, long value, long count) throws OrtException {
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment total = arena.allocate(JAVA_LONG);
            api.call(OrtFunction.GetStringTensorDataLength, value, total.address());
            return Math.addExact(total.get(JAVA_LONG, 0), Math.multiplyExact(count, LENGTH_BYTES));
        }
    }

    /** Writes the {@code count} strings in the tensor {@code value} into {@code target}, which they fill exactly. */
    static void copy(OrtApi api, long value, long count, MemorySegment target) throws OrtException {
        if (count == 0) {
            return;
        }
        try (Arena arena = Arena.ofConfined()) {
            MemorySegment offsets = arena.allocate(JAVA_LONG, count);
            // All bytes go to the end of the target at once and move down as the lengths come between them: string i
            // moves down by 4 bytes for each string after it, so no string is overwritten before it has moved.
            MemorySegment content = target.asSlice(count * LENGTH_BYTES);
            api.call(
                    OrtFunction.GetStringTensorContent,
                    value,
                    content.byteSize() == 0 ? offsets.address() : content.address(),
                    content.byteSize(),
                    offsets.address(),
                    count);
            interleave(content, offsets, target);
        }
    }

    private static void interleave(MemorySegment content, MemorySegment offsets, MemorySegment target) {
        long count = offsets.byteSize() / JAVA_LONG.byteSize();
        for (long i = 0; i < count; i++) {
            long start = offsets.getAtIndex(JAVA_LONG, i);
            long end = i + 1 < count ? offsets.getAtIndex(JAVA_LONG, i + 1) : content.byteSize();
            long length = end - start;
            if (length > MAX_LENGTH) {
                throw new IllegalArgumentException("string: " + length + " bytes (expected: <= " + MAX_LENGTH + ")");
            }
            long position = start + i * LENGTH_BYTES;
            target.set(LENGTH, position, (int) length);
            MemorySegment.copy(content, start, target, position + LENGTH_BYTES, length);
        }
    }

    @SuppressWarnings("restricted")
    private static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }
}
