package dev.nereid.backend.tensorflow.graph;

import dev.nereid.backend.tensorflow.capi.TfDataType;
import java.util.Optional;

/**
 * An input or output of a model. Immutable.
 *
 * @param name the name that clients use
 * @param tensor the name of the tensor in the graph, such as {@code input:0}; empty for one that is no dense tensor
 * @param shape the dimensions, -1 where they are open; empty if not even their number is known
 */
public record GraphTensor(String name, String tensor, TfDataType type, Optional<long[]> shape) {
    /** Returns whether it has one value for each index of a dense array, not that of a sparse or composite tensor. */
    public boolean isDense() {
        return !tensor.isEmpty();
    }
}
