package dev.nereid.spi;

/**
 * A pre- or postprocessing step in Java: one method from tensors to tensors. <em>Implemented by backends.</em>
 *
 * <p>The plugin is a jar with a class such as this, and its name in
 * {@code META-INF/services/dev.nereid.spi.BackendProvider}:
 *
 * {@snippet :
 * public final class Twice implements TensorFunction {
 *     @Override
 *     public String name() {
 *         return "twice";
 *     }
 *
 *     @Override
 *     public void apply(InferenceRequest request, ModelContext model) {
 *         Tensor in = request.requireInput("INPUT");
 *         Tensor out = request.response().allocate("OUTPUT", DataType.FP32, in.shape());
 *         for (long at = 0; at < in.byteSize(); at += Float.BYTES) {
 *             float value = in.data().get(ValueLayout.JAVA_FLOAT_UNALIGNED, at);
 *             out.data().set(ValueLayout.JAVA_FLOAT_UNALIGNED, at, 2 * value);
 *         }
 *     }
 * }
 * }
 *
 * @since 1.0
 */
public interface TensorFunction extends BackendProvider {
    /**
     * Computes the response of one request. Called by one thread at a time for each instance of a model, and by
     * several threads at once for several instances or models: keep no state in fields. May compute or wait for as long as
     * it needs, unless {@link #execution()} says otherwise.
     *
     * @param request the request, with its response in {@link InferenceRequest#response()}
     * @param model the configuration, files and log of the model
     * @throws BackendException if this request failed; the others of its batch are not touched, and neither are they
     *     by any other exception, which is reported as {@link ErrorCode#INTERNAL}
     */
    void apply(InferenceRequest request, ModelContext model);

    /**
     * Returns the kind of execution: how long {@link #apply} holds its thread. Called once, when the backend is created, on
     * a control thread.
     *
     * @return {@link BackendTraits.Execution#LONG}, as by default: each instance has a thread of its own;
     *     {@link BackendTraits.Execution#SHORT} for a function that takes microseconds and never blocks: threads that
     *     serve the network may call it, and one that does not return stops all of their connections
     */
    default BackendTraits.Execution execution() {
        return BackendTraits.Execution.LONG;
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
     * @return a backend with the executions that {@link #execution()} says
     */
    @Override
    default Backend create(BackendContext context) {
        return new FunctionBackend(this);
    }
}
