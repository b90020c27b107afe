package dev.nereid.backend.pytorch;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Optional;

/** Tensors of ones, with which a module is tried: indices, lengths and divisors of 1 fit most scripts. Stateless. */
final class ExampleInputs {
    private static final long MAX_BYTES = 256L << 20;
    private static final long ALIGNMENT = 64;
    private static final short HALF_ONE = 0x3C00;
    private static final short BRAIN_ONE = 0x3F80;

    private ExampleInputs() {}

    /** Returns a tensor of ones, or of empty texts, of a shape without open dimensions; empty if it is too large. */
    static Optional<Tensor> ones(Arena arena, DataType type, Shape shape) {
        long elements = 1;
        for (int i = 0; i < shape.rank(); i++) {
            if (shape.dim(i) > 0 && elements > MAX_BYTES / shape.dim(i)) {
                return Optional.empty();
            }
            elements *= shape.dim(i);
        }
        int size = type == DataType.BYTES ? Integer.BYTES : type.byteSize();
        if (elements > MAX_BYTES / size) {
            return Optional.empty();
        }
        MemorySegment data =
                arena.allocate(Math.max(1, elements * size), ALIGNMENT).asSlice(0, elements * size);
        for (long i = 0; i < elements && type != DataType.BYTES; i++) {
            switch (type) {
                case FP64 -> data.setAtIndex(ValueLayout.JAVA_DOUBLE, i, 1);
                case FP32 -> data.setAtIndex(ValueLayout.JAVA_FLOAT, i, 1);
                case FP16 -> data.setAtIndex(ValueLayout.JAVA_SHORT, i, HALF_ONE);
                case BF16 -> data.setAtIndex(ValueLayout.JAVA_SHORT, i, BRAIN_ONE);
                case INT64 -> data.setAtIndex(ValueLayout.JAVA_LONG, i, 1);
                case INT32 -> data.setAtIndex(ValueLayout.JAVA_INT, i, 1);
                case INT16 -> data.setAtIndex(ValueLayout.JAVA_SHORT, i, (short) 1);
                default -> data.set(ValueLayout.JAVA_BYTE, i, (byte) 1);
            }
        }
        return Optional.of(Tensor.of(type, shape, data));
    }
}
