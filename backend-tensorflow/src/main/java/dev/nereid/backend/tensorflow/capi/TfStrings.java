package dev.nereid.backend.tensorflow.capi;

import static dev.nereid.backend.natives.SerializedStrings.LENGTH_BYTES;
import static dev.nereid.backend.natives.SerializedStrings.lengthAt;
import static dev.nereid.backend.natives.SerializedStrings.putLength;
import static dev.nereid.backend.natives.SerializedStrings.requireEnd;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * Converts between strings of a request and strings of TensorFlow. Stateless.
 *
 * <p>A request has each string as its length in 4 bytes, little-endian, and its bytes. TensorFlow has an array of
 * {@code TF_TString}, of 24 bytes each. Two kinds of them refer to the bytes of the request, without a copy: of a view
 * TensorFlow makes further views, which end with the bytes; of a large string it copies the bytes.
 */
final class TfStrings {
    /** The size of a {@code TF_TString}. */
    static final long STRING_BYTES = 24;

    /** {@code struct TF_TString_Large}: the size with the kind in its lowest 2 bits, the capacity, a pointer. */
    private static final int KIND_BITS = 2;

    private static final long LARGE = 1;
    private static final long CAPACITY_OFFSET = 8;
    private static final long POINTER_OFFSET = 16;

    private TfStrings() {}

    /** Writes views of strings; throws {@link IllegalArgumentException} unless the source has {@code count} of them. */
    static void view(TfApi api, MemorySegment source, long count, MemorySegment target) {
        long offset = 0;
        for (long i = 0; i < count; i++) {
            long length = lengthAt(source, offset, i, count);
            offset += LENGTH_BYTES;
            long string = target.address() + i * STRING_BYTES;
            api.shortCall(TfFunction.StringInit, string);
            api.shortCall(TfFunction.StringAssignView, string, source.address() + offset, length);
            offset += length;
        }
        requireEnd(source, offset, count);
    }

    /**
     * Writes the {@code count} strings in {@code source} into {@code target} so that operations which keep one copy its
     * bytes. TensorFlow never frees the bytes: it does not own the array.
     *
     * @throws IllegalArgumentException if {@code source} holds fewer or more strings
     */
    static void copyable(MemorySegment source, long count, MemorySegment target) {
        long offset = 0;
        for (long i = 0; i < count; i++) {
            long length = lengthAt(source, offset, i, count);
            offset += LENGTH_BYTES;
            long string = i * STRING_BYTES;
            target.set(ValueLayout.JAVA_LONG, string, length << KIND_BITS | LARGE);
            target.set(ValueLayout.JAVA_LONG, string + CAPACITY_OFFSET, length);
            target.set(ValueLayout.JAVA_LONG, string + POINTER_OFFSET, source.address() + offset);
            offset += length;
        }
        requireEnd(source, offset, count);
    }

    /** Returns the bytes that {@link #copy} needs for an array of strings. */
    static long byteSize(TfApi api, MemorySegment strings) {
        long count = strings.byteSize() / STRING_BYTES;
        long total = Math.multiplyExact(count, LENGTH_BYTES);
        for (long i = 0; i < count; i++) {
            total = Math.addExact(total, length(api, strings.address() + i * STRING_BYTES));
        }
        return total;
    }

    /** Writes an array of strings into {@code target}, which they fill exactly. */
    static void copy(TfApi api, MemorySegment strings, MemorySegment target) {
        long count = strings.byteSize() / STRING_BYTES;
        long offset = 0;
        for (long i = 0; i < count; i++) {
            long string = strings.address() + i * STRING_BYTES;
            long length = length(api, string);
            putLength(target, offset, length);
            offset += LENGTH_BYTES;
            MemorySegment bytes = memory(api.shortPointer(TfFunction.StringGetDataPointer, string), length);
            MemorySegment.copy(bytes, 0, target, offset, length);
            offset += length;
        }
    }

    private static long length(TfApi api, long string) {
        return api.shortPointer(TfFunction.StringGetSize, string);
    }

    @SuppressWarnings("restricted")
    private static MemorySegment memory(long address, long byteSize) {
        return MemorySegment.ofAddress(address).reinterpret(byteSize);
    }
}
