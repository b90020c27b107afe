package dev.nereid.scheduler.batch;

import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import org.jspecify.annotations.Nullable;

/**
 * An output of a model, prepared for the checks of each response. Immutable.
 *
 * @param index its index in the order of the configuration; below 0 for an output that the configuration does not have
 * @param batched whether its first dimension is the batch dimension
 * @param reshaped whether its shape for clients differs from that of the backend
 * @param source the input with the shapes by which the output is split among the requests of a batch; {@code null} if
 *     it is split by items
 */
record OutputSpec(
        int index,
        TensorSpec tensor,
        boolean batched,
        boolean reshaped,
        @Nullable String source) {
    /** Returns an output that the configuration does not have: it is dropped. */
    static OutputSpec unknown(String name, DataType type, Shape shape) {
        return new OutputSpec(-1, TensorSpec.of(name, type, shape), false, false, null);
    }

    boolean isKnown() {
        return index >= 0;
    }

    /** Returns the dimensions for clients, with the batch dimension. */
    Shape dims() {
        return batched ? tensor.dims().prepend(Shape.VARIABLE) : tensor.dims();
    }
}
