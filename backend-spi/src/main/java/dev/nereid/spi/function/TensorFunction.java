package dev.nereid.spi.function;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelContext;

/**
 * A pre- or postprocessing step in Java: one method from tensors to tensors. <em>Implemented by backends.</em>
 *
 * <p>The whole plugin is one class:
 *
 * {@snippet :
 * @BackendFunction(name = "twice", maxBatchSize = 8)
 * @Input(name = "INPUT", type = DataType.FP32, dims = -1)
 * @Output(name = "OUTPUT", type = DataType.FP32, dims = -1)
 * public final class Twice implements TensorFunction {
 *     @Override
 *     public void apply(InferenceRequest request, ModelContext model) {
 *         Tensor in = request.requireInput("INPUT");
 *         float[] values = in.floats();
 *         for (int i = 0; i < values.length; i++) {
 *             values[i] *= 2;
 *         }
 *         request.response().putFloats("OUTPUT", in.shape(), values);
 *     }
 * }
 * }
 *
 * <p>Its resources for each model, such as a vocabulary, belong to a new object that {@link #open} returns:
 *
 * {@snippet :
 * @BackendFunction(name = "tokens")
 * public final class Tokens implements TensorFunction {
 *     private Vocabulary vocabulary;
 *
 *     @Override
 *     public TensorFunction open(ModelContext model) {
 *         Tokens opened = new Tokens();
 *         opened.vocabulary = Vocabulary.read(model.versionDirectory().resolve("vocab.txt"));
 *         return opened;
 *     }
 *
 *     @Override
 *     public void apply(InferenceRequest request, ModelContext model) {
 *         long[] ids = vocabulary.ids(request.requireInput("TEXT").strings());
 *         request.response().putLongs("IDS", Shape.of(1, ids.length), ids);
 *     }
 *
 *     @Override
 *     public void close() {
 *         vocabulary.close();
 *     }
 * }
 * }
 *
 * <p>A class without annotations has a {@link #name()}, and is named in
 * {@code META-INF/services/dev.nereid.spi.BackendProvider} by hand.
 *
 * @since 1.0
 */
public non-sealed interface TensorFunction extends FunctionProvider {

    /**
     * Computes the response of one request. Called by one thread at a time for each instance of a model, and by
     * several threads at once for several instances: fields are set by {@link #open} alone, or safe for that. May compute or
     * wait for as long as it needs, unless {@link #execution()} says otherwise.
     *
     * @param request the request, with its response in {@link InferenceRequest#response()}
     * @param model the configuration, files and log of the model
     * @throws BackendException if this request failed; the others of its batch are not touched, and neither are they
     *     by any other exception, which is reported as {@link ErrorCode#INTERNAL}
     */
    void apply(InferenceRequest request, ModelContext model);

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
    default TensorFunction open(ModelContext model) {
        return this;
    }

    /**
     * Creates the backend around this function.
     *
     * @param context not used
     * @return a backend with the executions that {@link #execution()} says
     */
    @Override
    default Backend create(BackendContext context) {
        return new TensorFunctionBackend(this);
    }
}
