package dev.nereid.backend.tensorflow.capi;

import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.SymbolLookup;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.Map;

/**
 * The loaded TensorFlow: native library and functions. Any thread may use it.
 *
 * <p>Closing it lets no further session be opened; it is released once its last session and its last tensor are closed.
 * The library itself stays mapped until the process ends, since TensorFlow registers its operations with it.
 */
public final class TfLibrary implements AutoCloseable {
    /** The lock of all plugins of the process, whichever class loader they have: a constant is interned. */
    private static final String PROCESS = "dev.nereid.backend.tensorflow";

    /**
     * The paths of the loaded libraries of operations, by digest and by origin. They stay loaded until the process ends, as
     * do the classes of a plugin with native libraries.
     */
    private static final Map<String, String> OPERATORS = new HashMap<>();

    private static final String LOG_LEVEL = "TF_CPP_MIN_LOG_LEVEL";
    /** Errors only: they go to standard error, and failures are reported to the caller as well. */
    private static final String ERRORS = "2";

    private static final String RELEASES = "2.";

    private final Arena arena = Arena.ofShared();
    private final Path file;
    private final TfApi api;
    private final String version;
    private final ReferenceCount references = new ReferenceCount("TensorFlow", arena::close);

    @SuppressWarnings("restricted")
    private TfLibrary(Path file) {
        this.file = file;
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
        synchronized (PROCESS) { // between the look at what is mapped and the mapping
            Path file = NativeLibrary.find(platform, plugin, classes, cache.toAbsolutePath());
            try (Arena scratch = Arena.ofConfined()) {
                CMemory.setEnvironment(scratch.allocateFrom(LOG_LEVEL), scratch.allocateFrom(ERRORS));
            }
            return new TfLibrary(file);
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

    /** Returns the file that is loaded. */
    public Path file() {
        return file;
    }

    /**
     * Registers the operations in a library for all models of the process, until it ends.
     *
     * <p>A second registration of the same operations would make both unusable. So a library is loaded once for its content
     * and once for its origin, from whatever copy: TensorFlow knows it again by the path of the first.
     *
     * @param operators the library, which is mapped from now on; it may be removed
     * @param origin the file in the model's directory
     * @param digest the digest of the library's content
     * @return false if another content of {@code origin} is loaded, which stays
     * @throws TfException if TensorFlow cannot load it
     */
    public boolean loadOperators(Path operators, Path origin, String digest) throws TfException {
        String place = origin.toAbsolutePath().toString();
        synchronized (PROCESS) { // between the look at what is loaded and the load
            String loaded = OPERATORS.get(digest);
            String former = OPERATORS.get(place);
            if (loaded == null && former != null) {
                loadOperators(former);
                return false;
            }
            String path = loaded == null ? operators.toAbsolutePath().toString() : loaded;
            loadOperators(path);
            OPERATORS.put(digest, path);
            OPERATORS.put(place, path);
            return true;
        }
    }

    private void loadOperators(String operators) throws TfException {
        references.retain();
        try (Arena scratch = Arena.ofConfined();
                TfStatus status = new TfStatus(api)) {
            api.pointer(TfFunction.LoadLibrary, CStrings.write(scratch, operators), status.handle());
            status.check();
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
