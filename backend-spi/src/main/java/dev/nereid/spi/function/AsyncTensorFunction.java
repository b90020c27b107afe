package dev.nereid.spi.function;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletionStage;

/**
 * A pre- or postprocessing step in Java that waits without holding a thread. <em>Implemented by backends.</em>
 *
 * <p>One method starts the work and returns at once; a stage completes when the response is filled. It is for steps
 * that wait for a database, a service or another model. The plugin is made as that of a {@link TensorFunction}. The
 * requests of a batch complete together, when all of their stages are complete; a model without batching responds to each
 * request separately.
 *
 * @since 1.0
 */
public non-sealed interface AsyncTensorFunction extends FunctionProvider {

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
     * Returns how many batches of one instance may wait for their stages. Called once, when the backend is created, on
     * a control thread.
     *
     * @return as {@link BackendTraits#maxDeferred()}; 64 by default
     */
    default int maxDeferred() {
        return 64;
    }

    /**
     * Opens the function for one model. Called once for each load of a version, on a control thread that may block.
     *
     * <p>Resources of the function for one model are made here, from its files, its parameters and its other services.
     * The result serves this model alone, until it is closed. The server calls {@code apply} and {@link #close} of it;
     * name, completion and execution come from this function. So the result may be a lambda.
     *
     * @param model the configuration, files, log, metrics and client of the model, valid until the result is closed
     * @return a new object; this function, as by default, if it needs nothing for a model
     * @throws BackendException if the function cannot serve the model; its load fails with this error
     */
    default AsyncTensorFunction open(ModelContext model) {
        return this;
    }

    /**
     * Creates the backend around this function.
     *
     * @param context not used
     * @return a backend; its executions end when the stages of their requests are complete
     */
    @Override
    default Backend create(BackendContext context) {
        return new AsyncFunctionBackend(this);
    }
}
