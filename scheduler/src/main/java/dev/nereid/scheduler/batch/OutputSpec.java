package dev.nereid.scheduler.batch;

import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import org.jspecify.annotations.Nullable;

/**
 * An output of a model, prepared for the checks of each response. Immutable.
 *
 * @param index its place in the order of the configuration
 * @param tensor what the configuration says of it
 * @param batched whether it has a batch dimension in front
 * @param reshaped whether clients see it in another shape than the backend
 * @param source the input by whose shapes it is cut among the requests of a batch; {@code null} if it is cut by items
 */
record OutputSpec(
        int index,
        TensorSpec tensor,
        boolean batched,
        boolean reshaped,
        @Nullable String source) {
    /** Returns the dimensions that clients see, with that of the batch. */
    Shape dims() {
        return batched ? tensor.dims().prepend(Shape.VARIABLE) : tensor.dims();
    }
}
