package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.NativeLibraryFile;
import dev.nereid.backend.onnx.ort.NativePlatform;
import dev.nereid.backend.onnx.ort.OrtException;
import dev.nereid.backend.onnx.ort.OrtLibrary;
import dev.nereid.backend.onnx.ort.OrtSession;
import dev.nereid.backend.onnx.ort.OrtThreads;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;

/** The ONNX Runtime backend: one loaded library, shared by all models. Immutable; any control thread may use it. */
final class OnnxBackend implements Backend {
    /** Making an instance is making an execution of a session, which any thread may do. */
    private static final BackendTraits TRAITS = BackendTraits.DEFAULT.withParallelInstances();

    private final OrtLibrary library;
    private final OnnxBackendOptions options;
    private final PoolThreads poolThreads;

    private OnnxBackend(OrtLibrary library, OnnxBackendOptions options) {
        this.library = library;
        this.options = options;
        poolThreads = new PoolThreads(options.processors());
    }

    /** Unpacks the native library where an earlier start has not done so, and loads it. */
    static OnnxBackend open(BackendContext context) throws BackendException {
        OnnxBackendOptions options = OnnxBackendOptions.of(context);
        try {
            NativePlatform platform = NativePlatform.current();
            Path file =
                    NativeLibraryFile.unpack(platform, OnnxBackend.class.getClassLoader(), context.cacheDirectory());
            OrtThreads shared = options.sharedThreads();
            OrtLibrary library = OrtLibrary.open(file, platform, shared);
            context.logger()
                    .log(
                            System.Logger.Level.INFO,
                            "loaded ONNX Runtime " + library.version()
                                    + (options.globalThreadPool()
                                            ? ", one pool of threads for all models, " + shared.text()
                                            : ""));
            return new OnnxBackend(library, options);
        } catch (OrtException e) {
            throw OnnxErrors.of(e);
        } catch (IOException | UnsupportedOperationException | IllegalArgumentException | IllegalStateException e) {
            // The reason names paths of the server's machine: only the log contains it.
            throw new BackendException(ErrorCode.UNAVAILABLE, "the library of ONNX Runtime could not be loaded", e);
        }
    }

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Optional<ModelCompletion> complete(ModelContext context) throws BackendException {
        if (!OnnxCompletion.isNeeded(context.settings())) {
            context.logger()
                    .log(
                            System.Logger.Level.INFO,
                            "skipping model configuration auto-complete for '"
                                    + context.settings().name() + "': inputs and outputs already specified");
            return Optional.empty();
        }
        OnnxModelOptions modelOptions = OnnxModelOptions.of(context, options);
        try (OrtSession session =
                OrtSession.open(library, OnnxModelPath.of(context), modelOptions.forReadingTheSignature())) {
            return Optional.of(OnnxCompletion.of(context, session, options.defaultMaxBatchSize()));
        } catch (OrtException e) {
            throw OnnxErrors.of(e);
        }
    }

    @Override
    public Model load(ModelContext context) throws BackendException {
        OnnxModelOptions modelOptions = OnnxModelOptions.of(context, options);
        if (modelOptions.session().sharesThreads()) {
            return OnnxModel.load(library, context, modelOptions, () -> {});
        }
        int threads = modelOptions.poolThreads();
        if (poolThreads.acquire(threads)) {
            return loadCounted(context, modelOptions, threads);
        }
        boolean shares = modelOptions.mayShareThreads(context.settings());
        return OnnxModel.load(library, context, shares ? modelOptions.withSharedThreads() : modelOptions, () -> {});
    }

    private Model loadCounted(ModelContext context, OnnxModelOptions modelOptions, int threads)
            throws BackendException {
        boolean loaded = false;
        try {
            Model model = OnnxModel.load(library, context, modelOptions, () -> poolThreads.release(threads));
            loaded = true;
            return model;
        } finally {
            if (!loaded) {
                poolThreads.release(threads);
            }
        }
    }

    @Override
    public void close() {
        library.close();
    }
}
