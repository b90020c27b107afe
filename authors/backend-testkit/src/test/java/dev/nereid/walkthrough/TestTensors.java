package dev.nereid.walkthrough;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.ValueLayout;
import java.util.List;

/** Small tensors in memory that the garbage collector frees. */
final class TestTensors {
    private TestTensors() {}

    static Tensor floats(Shape shape, float... numbers) {
        return Tensor.of(DataType.FP32, shape, Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, numbers));
    }

    static Tensor ints(Shape shape, int... numbers) {
        return Tensor.of(DataType.INT32, shape, Arena.ofAuto().allocateFrom(ValueLayout.JAVA_INT, numbers));
    }

    static List<Float> floats(Tensor tensor) {
        return tensor.data()
                .elements(ValueLayout.JAVA_FLOAT_UNALIGNED)
                .map(element -> element.get(ValueLayout.JAVA_FLOAT_UNALIGNED, 0))
                .toList();
    }
}
