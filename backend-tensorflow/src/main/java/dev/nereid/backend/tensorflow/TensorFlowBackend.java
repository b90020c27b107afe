package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.Completions;
import dev.nereid.backend.tensorflow.capi.TfLibrary;
import dev.nereid.backend.tensorflow.capi.TfSession;
import dev.nereid.backend.tensorflow.graph.GraphModel;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.Optional;

/** The TensorFlow backend: one loaded library, shared by all models. Immutable; any control thread may use it. */
final class TensorFlowBackend implements Backend {
    /** Making an instance is making an execution of a session, which any thread may do. */
    private static final BackendTraits TRAITS = BackendTraits.DEFAULT.withParallelInstances();

    private final TfLibrary library;
    private final TensorFlowBackendOptions options;

    private TensorFlowBackend(TfLibrary library, TensorFlowBackendOptions options) {
        this.library = library;
        this.options = options;
    }

    /** Unpacks the native library where an earlier start has not done so, and loads it. */
    static TensorFlowBackend open(BackendContext context) {
        TensorFlowBackendOptions options = TensorFlowBackendOptions.of(context);
        try {
            TfLibrary library = TfLibrary.open(
                    context.pluginDirectory(), TensorFlowBackend.class.getClassLoader(), context.cacheDirectory());
            context.logger()
                    .log(
                            System.Logger.Level.INFO,
                            "loaded TensorFlow " + library.version() + ", " + options.intraOp()
                                    + " threads for one operation");
            return new TensorFlowBackend(library, options);
        } catch (IOException | UncheckedIOException | UnsupportedOperationException | IllegalStateException e) {
            throw new BackendException(ErrorCode.UNAVAILABLE, "TensorFlow could not be loaded: " + reason(e), e);
        } catch (IllegalArgumentException e) {
            // The reason names paths of the server's machine: only the log contains it.
            throw new BackendException(
                    ErrorCode.UNAVAILABLE,
                    "TensorFlow could not be loaded: its library cannot be opened (expected: a library for this"
                            + " machine, and glibc 2.27 or later)",
                    e);
        }
    }

    private static String reason(Exception e) {
        return String.valueOf(e.getMessage());
    }

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Optional<ModelCompletion> complete(ModelContext context) {
        if (!Completions.isNeeded(context)) {
            return Optional.empty();
        }
        TensorFlowModelOptions modelOptions = TensorFlowModelOptions.of(context, options);
        ModelLoader loader = new ModelLoader(context, modelOptions);
        GraphModel model = loader.read();
        if (loader.needsSession()) {
            try (TfSession session = loader.open(
                            library, model.operators(), modelOptions.session(model.operators(), options))
                    .session()) {
                model = loader.resolve(model, session);
            }
        }
        return Optional.of(TensorFlowCompletion.of(context, model, options.defaultMaxBatchSize()));
    }

    @Override
    public Model load(ModelContext context) {
        return TensorFlowModel.load(library, context, options);
    }

    @Override
    public void close() {
        library.close();
    }
}
