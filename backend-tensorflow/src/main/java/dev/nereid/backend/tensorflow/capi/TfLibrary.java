package dev.nereid.backend.tensorflow.capi;

import dev.nereid.backend.natives.CStrings;
import dev.nereid.backend.natives.ReferenceCount;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;

/**
 * The loaded TensorFlow: native library and functions. Any thread may use it.
 *
 * <p>Closing it lets no further session be opened; it is released once its last session and its last tensor are closed.
 * The library itself stays mapped until the process ends, since TensorFlow registers its operations with it.
 */
public final class TfLibrary implements AutoCloseable {
    /** The lock of all plugins of the process, whichever class loader they have: a constant is interned. */
    private static final String PROCESS = "dev.nereid.backend.tensorflow";

    /** The loaded libraries of operations by origin. The process knows the first origin of each, from other plugins too. */
    private static final Map<Path, Path> ORIGINS = new HashMap<>();

    private static final String LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL";
    /** Errors only: they go to standard error, and failures are reported to the caller as well. */
    private static final String ERRORS = "2";

    private static final String RELEASES = "2.";

    private final Arena arena = Arena.ofShared();
    private final Path file;
    private final Path cache;
    private final TfApi api;
    private final String version;
    private final ReferenceCount references = new ReferenceCount("TensorFlow", arena::close);

    @SuppressWarnings("restricted")
    private TfLibrary(Path file, Path cache) {
        this.file = file;
        this.cache = cache;
        try {
            api = TfApi.of(SymbolLookup.libraryLookup(file, arena));
            version = CStrings.read(api.create(TfFunction.Version));
            if (!version.startsWith(RELEASES)) {
                throw new IllegalStateException("TensorFlow: " + version + " (expected: " + RELEASES + "x)");
            }
        } catch (RuntimeException e) {
            arena.close();
            throw e;
        }
    }

    /**
     * Loads the library for this platform, unpacking it first if that has not been done.
     *
     * @param plugin the directory of the plugin
     * @param classes finds an artifact among the plugin's own jars
     * @param cache the directory to unpack into
     * @throws IOException if the artifact is missing or damaged, or cannot be unpacked
     * @throws IllegalStateException if another TensorFlow is loaded in this process, or the processor lacks AVX
     * @throws IllegalArgumentException if the file cannot be loaded
     */
    public static TfLibrary open(Path plugin, ClassLoader classes, Path cache) throws IOException {
        NativePlatform platform = NativePlatform.current();
        Processor.obstacle().ifPresent(reason -> {
            throw new IllegalStateException(reason);
        });
        synchronized (PROCESS) { // from the check of mapped libraries to the mapping
            Path file = platform.library(plugin, classes, cache.toAbsolutePath());
            try (Arena scratch = Arena.ofConfined()) {
                CMemory.setEnvironment(scratch.allocateFrom(LOG_LEVEL), scratch.allocateFrom(ERRORS));
            }
            return new TfLibrary(file, cache.toAbsolutePath());
        }
    }

    /** Returns the functions; usable between {@code retain} and {@code release} of {@link #references} only. */
    TfApi api() {
        return api;
    }

    /** Returns the reference count of the library. Sessions and tensors retain it for their lifetime. */
    ReferenceCount references() {
        return references;
    }

    /** Returns the release of TensorFlow, such as {@code 2.18.0}. */
    public String version() {
        return version;
    }

    public Path file() {
        return file;
    }

    /**
     * Registers the operations in a library for all models of the process, until it ends.
     *
     * <p>A second registration of the same operations would make both unusable. So a library is loaded once for its content
     * and once for its origin, from whatever copy: TensorFlow knows it again by the path of the first.
     *
     * @param copies a directory with copies of the library and of the files that it may need beside it
     * @param library the name of the library among them
     * @param origin the library in the model's directory
     * @return false if another content of {@code origin} is loaded, which stays
     * @throws TfException if TensorFlow cannot load it
     * @throws IOException if a copy cannot be read, or not be written to the cache
     */
    public boolean loadOperators(Path copies, Collection<String> files, String library, Path origin)
            throws TfException, IOException {
        synchronized (PROCESS) { // from the check of loaded libraries to the load
            OperatorDirectory directory = OperatorDirectory.of(copies.resolve(library), origin);
            Path place = origin.toAbsolutePath();
            Optional<Path> same = directory.sameContent();
            Optional<Path> former = same.isPresent() ? Optional.empty() : Optional.ofNullable(ORIGINS.get(place));
            if (same.isEmpty() && former.isEmpty()) {
                former = directory.sameOrigin();
            }
            Path path;
            if (former.isPresent()) {
                path = former.get();
            } else {
                path = same.isPresent() ? same.get() : directory.write(cache, copies, files, library);
            }
            loadOperators(path, origin);
            ORIGINS.put(place, path);
            return former.isEmpty();
        }
    }

    private void loadOperators(Path operators, Path origin) throws TfException {
        references.retain();
        try (Arena scratch = Arena.ofConfined();
                TfStatus status = new TfStatus(api)) {
            api.pointer(TfFunction.LoadLibrary, CStrings.write(scratch, operators.toString()), status.handle());
            status.check();
        } catch (TfException e) { // clients see the directory of the model
            String shown = String.valueOf(e.getMessage()).replace(operators.toString(), origin.toString());
            throw new TfException(e.code(), shown);
        } finally {
            references.release();
        }
    }

    /** Refuses further sessions. It is released when nothing of it is in use any more. */
    @Override
    public void close() {
        references.close();
    }
}
