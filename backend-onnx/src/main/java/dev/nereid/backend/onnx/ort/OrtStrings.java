package dev.nereid.backend.onnx.ort;

import static dev.nereid.backend.natives.SerializedStrings.LENGTH_BYTES;
import static dev.nereid.backend.natives.SerializedStrings.lengthAt;
import static dev.nereid.backend.natives.SerializedStrings.putLength;
import static dev.nereid.backend.natives.SerializedStrings.requireEnd;
import static java.lang.foreign.ValueLayout.JAVA_LONG;

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;

/**
 * Copies strings between ONNX Runtime's tensors and length-prefixed memory. Each string is its length in 4 bytes,
 * little-endian, and then its bytes. The bytes are arbitrary: no encoding is assumed, and zeros may occur. Stateless.
 */
final class OrtStrings {
    private OrtStrings() {}

    /** Fills a string tensor; throws {@link IllegalArgumentException} unless the source has {@code count} strings. */
    static void fill(OrtApi api, long value, long count, MemorySegment source, OrtScratch scratch) throws OrtException {
        long offset = 0;
        for (long i = 0; i < count; i++) {
            long length = lengthAt(source, offset, i, count);
            offset += LENGTH_BYTES;
            api.call(OrtFunction.GetResizedStringTensorElementBuffer, value, i, length, scratch.resultAddress(0));
            MemorySegment.copy(source, offset, memory(scratch.result(0), length), 0, length);
            offset += length;
        }
        requireEnd(source, offset, count);
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
            long position = start + i * LENGTH_BYTES;
            putLength(target, position, length);
            MemorySegment.copy(content, start, target, position + LENGTH_BYTES, length);
        }
    }

    @SuppressWarnings("restricted")
    private static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }
}
