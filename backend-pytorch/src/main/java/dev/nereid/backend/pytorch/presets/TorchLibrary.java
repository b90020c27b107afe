package dev.nereid.backend.pytorch.presets;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.io.IOException;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import org.bytedeco.javacpp.Loader;
import org.bytedeco.pytorch.global.torch;
import org.jspecify.annotations.Nullable;

/**
 * The loaded PyTorch. It stays until the process ends. Any thread may use it.
 *
 * <p>Some settings of PyTorch apply to the whole process: see {@link #openBlasThreads}, {@link #interOpThreads},
 * {@link #profiling} and {@link #executor}. The others are set for each execution.
 */
public final class TorchLibrary {
    /** The file by which a loaded PyTorch is recognized. */
    public static final String FILE = Natives.LIBRARY;

    private static final ReentrantLock LOCK = new ReentrantLock();

    @GuardedBy("LOCK")
    private static @Nullable TorchLibrary loaded;

    private final MethodHandle openBlas;

    private TorchLibrary(MethodHandle openBlas) {
        this.openBlas = openBlas;
    }

    /**
     * Loads PyTorch; returns the same library at every call.
     *
     * @param directory that of all its libraries; the only one that the process may ever load it from
     * @throws IOException with the linker's reason if it cannot be loaded
     */
    public static TorchLibrary open(Path directory) throws IOException {
        LOCK.lock();
        try {
            TorchLibrary library = loaded;
            if (library == null) {
                Natives.load(directory);
                ElementType.create();
                Dictionaries.create();
                Natives.endWithoutDestructors();
                library = new TorchLibrary(Natives.openBlasThreads(directory));
                loaded = library;
            }
            return library;
        } finally {
            LOCK.unlock();
        }
    }

    /** Returns the release of PyTorch, for instance {@code 2.10.0}. */
    public String version() {
        try {
            String presets = Loader.getVersion("org.bytedeco", "pytorch"); // such as 2.10.0-1.5.13
            return presets.substring(0, presets.indexOf('-'));
        } catch (IOException | StringIndexOutOfBoundsException e) {
            return "(unknown)"; // the jar was packed again
        }
    }

    /** Sets the number of threads, at least 1, that a multiplication of matrices uses, for the whole process. */
    public void openBlasThreads(int threads) {
        try {
            openBlas.invokeExact(threads);
        } catch (Throwable e) {
            throw new IllegalStateException("openblas_set_num_threads: not called", e);
        }
    }

    /**
     * Sets the number of threads, at least 1, for tasks that a script forks, for the whole process. Returns why it was
     * not set: that is possible once, before the first such task.
     */
    public Optional<String> interOpThreads(int threads) {
        try {
            torch.set_num_interop_threads(threads);
            return Optional.empty();
        } catch (RuntimeException e) {
            return Optional.of(String.valueOf(TorchException.of(e).getMessage()));
        }
    }

    /** Returns the number of threads, at least 1, for tasks that a script forks. */
    public int interOpThreads() {
        return (int) torch.get_num_interop_threads();
    }

    /**
     * Sets whether the first executions of a script record types and shapes, {@code true} by default, for the whole
     * process. Returns the value before.
     */
    public boolean profiling(boolean enabled) {
        return set(torch.getProfilingMode(), enabled);
    }

    /**
     * Sets whether scripts are executed by the executor that optimizes recorded types and shapes, {@code true} by
     * default, for the whole process. Returns the value before.
     */
    public boolean executor(boolean enabled) {
        return set(torch.getExecutorMode(), enabled);
    }

    private static boolean set(org.bytedeco.javacpp.BoolPointer flag, boolean value) {
        boolean before = flag.get();
        flag.put(value);
        return before;
    }
}
