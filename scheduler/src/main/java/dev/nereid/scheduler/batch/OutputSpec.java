package dev.nereid.scheduler.batch;

import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import org.jspecify.annotations.Nullable;

/**
 * An output of a model, prepared for the checks of each response. Immutable.
 *
 * @param index its index in the order of the configuration
 * @param tensor its configuration
 * @param batched whether its first dimension is the batch dimension
 * @param reshaped whether its shape for clients differs from that of the backend
 * @param source the input whose shapes decide how it is split among the requests of a batch; {@code null} if it is
 *     split by items
 */
record OutputSpec(
        int index,
        TensorSpec tensor,
        boolean batched,
        boolean reshaped,
        @Nullable String source) {
    /** Returns the dimensions for clients, with the batch dimension. */
    Shape dims() {
        return batched ? tensor.dims().prepend(Shape.VARIABLE) : tensor.dims();
    }
}
