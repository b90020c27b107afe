package dev.nereid.spi;

import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionStage;

/**
 * A pre- or postprocessing step in Java that waits without holding a thread. <em>Implemented by backends.</em>
 *
 * <p>One method starts the work and returns at once; a stage completes when the response is filled. It is for steps
 * that wait for a database, a service or another model. The plugin is made as that of a {@link TensorFunction}. The
 * requests of a batch complete together, when all of their stages are complete; a model without batching responds to
 * each request by itself.
 *
 * @since 1.0
 */
public interface AsyncTensorFunction extends BackendProvider {
    /**
     * Starts to compute the response of one request. Called as {@link TensorFunction#apply}, but must not block: the
     * threads of instances are few. Other requests of the same batch are used by other threads meanwhile.
     *
     * @param request the request, with its response in {@link InferenceRequest#response()}; both may be used until the
     *     stage is complete, by one thread at a time
     * @param model the configuration, files and log of the model
     * @return completes when the response is filled, or exceptionally if this request failed: with a
     *     {@link BackendException}, with a {@link CancellationException} after the request was cancelled, or with any
     *     other exception, which is logged and reported as {@link ErrorCode#INTERNAL}. It has to complete some time,
     *     since the server keeps the batch until then
     * @throws BackendException if this request failed at once; the others of its batch are not touched, and neither are
     *     they by any other exception
     */
    CompletionStage<?> apply(InferenceRequest request, ModelContext model);

    /**
     * Returns the kind of execution: how long {@link #apply} holds its thread. Called once, when the backend is
     * created, on a control thread.
     *
     * @return {@link BackendTraits.Execution#LONG}, as by default: each instance has a thread of its own;
     *     {@link BackendTraits.Execution#SHORT} as of {@link TensorFunction#execution()}
     */
    default BackendTraits.Execution execution() {
        return BackendTraits.Execution.LONG;
    }

    /**
     * Returns how many batches of one instance may wait for their stages. Called once, when the backend is created, on
     * a control thread.
     *
     * @return as {@link BackendTraits#maxDeferred()}; 64 by default
     */
    default int maxDeferred() {
        return 64;
    }

    /**
     * Returns the tensors and the batching of the models of this function. The configuration of a model may leave out
     * what is said here, and must not contradict it: its load fails otherwise. Called on control threads, several times
     * for each load and for several models at once; returns the same each time.
     *
     * @return inputs and outputs without batch dimension, and the largest batch that a configuration may ask for, which
     *     also applies where it asks for 0; the transaction policy does not count, since a function gives one response to
     *     each request. {@link ModelCompletion#EMPTY}, as by default, if every configuration says all
     */
    default ModelCompletion completion() {
        return ModelCompletion.EMPTY;
    }

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
