package dev.nereid.api;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.Tensor;

/**
 * A checked input or an output: a tensor with its name. Immutable as a view of its memory.
 *
 * @param name the name of the tensor in the model
 * @param tensor its content, with batch dimension if the model batches
 */
public record NamedTensor(String name, Tensor tensor) {
    /** Checks the components. */
    public NamedTensor {
        requireNonNull(name, "name");
        requireNonNull(tensor, "tensor");
    }
}
