package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.Completions;
import dev.nereid.backend.onnx.ort.NativeLibraryFile;
import dev.nereid.backend.onnx.ort.NativePlatform;
import dev.nereid.backend.onnx.ort.OrtException;
import dev.nereid.backend.onnx.ort.OrtLibrary;
import dev.nereid.backend.onnx.ort.OrtProvider;
import dev.nereid.backend.onnx.ort.OrtSession;
import dev.nereid.backend.onnx.ort.OrtThreads;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
import java.nio.file.Path;
import java.util.Optional;

/** The ONNX Runtime backend: one loaded library, shared by all models. Immutable; any control thread may use it. */
final class OnnxBackend implements Backend {
    /** Making an instance is making an execution of a session, which any thread may do. */
    private static final BackendTraits PARALLEL = BackendTraits.DEFAULT.withParallelInstances();

    /** Without the provider of CUDA: the instances of models that leave it open run on the CPU, also beside a GPU. */
    private static final BackendTraits CPU_TRAITS =
            PARALLEL.withPreferredGroups(BackendTraits.PreferredGroup.of(Device.Kind.CPU, 2));

    private static final BackendTraits GPU_TRAITS = PARALLEL.withPlaces(MemoryPlace.Kind.GPU);

    private final OrtLibrary library;
    private final OnnxBackendOptions options;
    private final PoolThreads poolThreads;

    private OnnxBackend(OrtLibrary library, OnnxBackendOptions options) {
        this.library = library;
        this.options = options;
        poolThreads = new PoolThreads(options.processors());
    }

    /** Opens the backend with the native library in the plugin's own jars. */
    static OnnxBackend open(BackendContext context) {
        return open(context, OnnxBackend.class.getClassLoader());
    }

    /** Unpacks the native library of the artifact where an earlier start has not done so, and loads it. */
    static OnnxBackend open(BackendContext context, ClassLoader artifact) {
        OnnxBackendOptions options = OnnxBackendOptions.of(context);
        try {
            NativePlatform platform = NativePlatform.current();
            Path file = NativeLibraryFile.unpack(platform, artifact, context.cacheDirectory());
            OrtThreads shared = options.sharedThreads();
            OrtLibrary library = OrtLibrary.open(file, platform, shared);
            context.logger()
                    .log(
                            System.Logger.Level.INFO,
                            "loaded ONNX Runtime " + library.version()
                                    + (computesOnGpus(library) ? " for CUDA" : "")
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

    private static boolean computesOnGpus(OrtLibrary library) {
        return library.providers().contains(OrtProvider.Kind.CUDA.providerName());
    }

    @Override
    public BackendTraits traits() {
        return computesOnGpus(library) ? GPU_TRAITS : CPU_TRAITS;
    }

    @Override
    public Optional<ModelCompletion> complete(ModelContext context) {
        if (!Completions.isNeeded(context)) {
            return Optional.empty();
        }
        OnnxModelOptions modelOptions = OnnxModelOptions.of(context, options);
        OnnxFiles files = OnnxFiles.of(context);
        try (OrtSession session = OrtSession.open(library, files.model(), modelOptions.forReadingTheSignature())) {
            return Optional.of(OnnxCompletion.of(context, session, options.defaultMaxBatchSize()));
        } catch (OrtException e) {
            throw OnnxErrors.ofLoad(e, files);
        }
    }

    @Override
    public Model load(ModelContext context) {
        OnnxModelOptions modelOptions = OnnxModelOptions.of(context, options);
        if (modelOptions.session().sharesThreads()) {
            return OnnxModel.load(library, context, modelOptions, options, () -> {});
        }
        boolean shares = modelOptions.mayShareThreads(context.parameters());
        if (shares && OnnxAccelerators.cpuInstances(context) == 0) {
            return OnnxModel.load(library, context, modelOptions.withSharedThreads(), options, () -> {});
        }
        int threads = modelOptions.poolThreads();
        if (poolThreads.acquire(threads)) {
            return loadCounted(context, modelOptions, threads);
        }
        return OnnxModel.load(
                library, context, shares ? modelOptions.withSharedThreads() : modelOptions, options, () -> {});
    }

    private Model loadCounted(ModelContext context, OnnxModelOptions modelOptions, int threads) {
        boolean loaded = false;
        try {
            Model model = OnnxModel.load(library, context, modelOptions, options, () -> poolThreads.release(threads));
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
