package dev.nereid.backend.tensorrt.runtime;

import dev.nereid.spi.Shape;

/**
 * The order of the elements of a tensor in its memory. Immutable.
 *
 * @param name its name at TensorRT, such as {@code kCHW32}
 * @param dimension the dimension with elements that are joined to vectors, from 0 for the outermost; -1 for none
 * @param vectorLength the number of elements in a vector; the last one is filled up
 */
public record EngineFormat(String name, int dimension, int vectorLength) {
    /** Row-major order. */
    public static final EngineFormat LINEAR = new EngineFormat("kLINEAR", -1, 1);

    /** Returns whether the elements lie in row-major order. */
    public boolean isLinear() {
        return name.equals(LINEAR.name);
    }

    /** Returns whether elements are joined to vectors of more than one. */
    public boolean hasVectors() {
        return dimension >= 0 && vectorLength > 1;
    }

    /** Returns the dimensions of a tensor in memory, in full vectors; a variable one stays so. */
    public Shape padded(Shape shape) {
        if (!hasVectors() || shape.dim(dimension) == Shape.VARIABLE) {
            return shape;
        }
        long[] dims = shape.toArray();
        dims[dimension] = Math.ceilDiv(dims[dimension], vectorLength) * vectorLength;
        return Shape.of(dims);
    }
}
