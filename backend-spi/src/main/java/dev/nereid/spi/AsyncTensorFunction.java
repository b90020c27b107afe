package dev.nereid.spi;

import java.util.concurrent.CompletionStage;

/**
 * A pre- or postprocessing step in Java that waits for something else, such as a database or another model: one method
 * that returns at once. <em>Implemented by backends.</em>
 *
 * <p>The plugin is made as that of a {@link TensorFunction}. The requests of a batch complete together, when all of their
 * stages are complete; a model without batching responds to each request by itself.
 *
 * @since 1.0
 */
public interface AsyncTensorFunction extends BackendProvider {
    /**
     * Starts to compute the response of one request. Must not block: the threads of instances are few.
     *
     * @param request the request, with its response in {@link InferenceRequest#response()}; both may be used until the
     *     stage is complete, by one thread at a time
     * @param model the configuration, files and log of the model
     * @return completes when the response is filled, or exceptionally if this request failed: with a
     *     {@link BackendException}, or with any other exception, which is reported as {@link ErrorCode#INTERNAL}
     * @throws BackendException if this request failed at once; the others of its batch are not touched
     */
    CompletionStage<?> apply(InferenceRequest request, ModelContext model) throws BackendException;

    /**
     * Creates the backend around this function.
     *
     * @param context not used
     * @return a backend whose executions end when the stages of their requests are complete
     */
    @Override
    default Backend create(BackendContext context) {
        return new AsyncFunctionBackend(this);
    }
}
