package dev.nereid.scheduler.memory;

import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import org.jspecify.annotations.Nullable;

/** Finds items in tensors of byte strings. */
public final class ByteStrings {
    private static final ValueLayout.OfInt LENGTH = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private ByteStrings() {}

    /**
     * Returns the offsets of the items of a tensor, in bytes.
     *
     * @param tensor a tensor of byte strings with a first dimension of {@code items}
     * @return the offset of each item, and at the end the size; {@code null} if the memory cannot be read, or does not
     *     hold exactly the elements of the shape
     */
    public static long @Nullable [] offsets(Tensor tensor, int items) {
        Shape shape = tensor.shape();
        MemorySegment data = tensor.data();
        if (!tensor.place().isHost() || (shape.elementCount() > 0 && data.byteSize() / Integer.BYTES < items)) {
            return null;
        }
        long perItem = shape.dropFirst().elementCount();
        long[] offsets = new long[items + 1];
        long at = 0;
        for (int item = 0; item < items; item++) {
            offsets[item] = at;
            for (long i = 0; i < perItem && at >= 0; i++) {
                at = next(data, at);
            }
            if (at < 0) {
                return null;
            }
        }
        offsets[items] = at;
        return at == data.byteSize() ? offsets : null;
    }

    /**
     * Returns the offsets of some elements of a tensor, in bytes.
     *
     * @param elements the indices of the elements, rising, the last one being the number of all elements
     * @return the offset of each element; {@code null} if the memory does not hold exactly that number of elements, or
     *     cannot be read
     */
    public static long @Nullable [] offsets(Tensor tensor, long[] elements) {
        MemorySegment data = tensor.data();
        if (!tensor.place().isHost()) {
            return null;
        }
        long[] offsets = new long[elements.length];
        long at = 0;
        long element = 0;
        for (int i = 0; i < elements.length; i++) {
            while (element < elements[i]) {
                at = next(data, at);
                if (at < 0) {
                    return null;
                }
                element++;
            }
            offsets[i] = at;
        }
        return at == data.byteSize() ? offsets : null;
    }

    /** Returns the offset of the next element. It is -1 if the element at the given offset does not fit. */
    private static long next(MemorySegment data, long at) {
        long left = data.byteSize() - at - Integer.BYTES;
        long length = left < 0 ? -1 : Integer.toUnsignedLong(data.get(LENGTH, at));
        return left < 0 || length > left ? -1 : at + Integer.BYTES + length;
    }
}
