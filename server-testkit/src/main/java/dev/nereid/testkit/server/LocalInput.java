package dev.nereid.testkit.server;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;
import java.util.function.Function;

/**
 * One input of a request. Immutable; its memory is collected as garbage.
 *
 * @param elements the number of elements
 * @param shape the shape; empty for that of one item
 * @param maker makes the tensor in a shape
 */
record LocalInput(int elements, Optional<Shape> shape, Function<Shape, Tensor> maker) {
    /** Creates an input in memory with the elements. */
    static LocalInput of(DataType type, int elements, Optional<Shape> shape, Function<Arena, MemorySegment> memory) {
        return new LocalInput(elements, shape, given -> Tensor.of(type, given, memory.apply(Arena.ofAuto())));
    }

    static LocalInput of(Optional<Shape> shape, List<byte[]> elements) {
        return new LocalInput(elements.size(), shape, given -> Tensor.ofByteStrings(given, elements));
    }

    static LocalInput of(Tensor tensor) {
        return new LocalInput(
                Math.toIntExact(tensor.shape().elementCount()), Optional.of(tensor.shape()), given -> tensor);
    }

    /** Returns the tensor, in the given shape if the test named none. */
    Tensor tensor(Shape otherwise) {
        return maker.apply(shape.orElse(otherwise));
    }
}
