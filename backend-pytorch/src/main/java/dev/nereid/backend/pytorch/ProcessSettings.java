package dev.nereid.backend.pytorch;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.backend.pytorch.presets.TorchLibrary;
import dev.nereid.spi.ModelContext;
import java.util.NavigableMap;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.TreeMap;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Settings of PyTorch for the whole process, which each model may set. Guarded.
 *
 * <p>OpenBLAS, which multiplies matrices, has as many threads as the loaded model that computes with the fewest, so
 * that no model occupies more processors than configured. Models of short executions do not count: their matrices are
 * too small for several threads.
 */
final class ProcessSettings {
    /** The number for a model to which that of OpenBLAS makes no difference. */
    static final int ANY = Integer.MAX_VALUE;

    private final ReentrantLock lock = new ReentrantLock();
    private final TorchLibrary library;
    private final OptionalInt openBlasThreads;

    @GuardedBy("lock")
    private final NavigableMap<Integer, Integer> modelsByThreads = new TreeMap<>();

    @GuardedBy("lock")
    private int applied;

    @GuardedBy("lock")
    private @Nullable Boolean profiling;

    @GuardedBy("lock")
    private @Nullable Boolean executor;

    @GuardedBy("lock")
    private @Nullable Integer interOpThreads;

    /** Creates the settings, with the number of threads of OpenBLAS; empty to derive it from the models. */
    ProcessSettings(TorchLibrary library, OptionalInt openBlasThreads) {
        this.library = library;
        this.openBlasThreads = openBlasThreads;
    }

    /** Applies a model's settings before its first execution. Logs a warning if one of another model is replaced. */
    void apply(ModelContext context, PyTorchModelOptions options) {
        lock.lock();
        try {
            profiling = apply(context, "ENABLE_JIT_PROFILING", profiling, options.profiling(), library::profiling);
            executor = apply(context, "ENABLE_JIT_EXECUTOR", executor, options.executor(), library::executor);
            if (options.interOpThreads().isPresent()) {
                interOp(context, options.interOpThreads().getAsInt());
            }
        } finally {
            lock.unlock();
        }
    }

    /** Counts a loaded model that computes with a number of threads, or {@link #ANY}. */
    void add(ModelContext context, int threads) {
        lock.lock();
        try {
            modelsByThreads.merge(threads, 1, Integer::sum);
            if (applyThreads()) {
                context.logger()
                        .log(
                                System.Logger.Level.INFO,
                                "OpenBLAS computes with " + applied + " threads, for all models of the process");
            }
        } finally {
            lock.unlock();
        }
    }

    /** Forgets a model that is unloaded. */
    void remove(int threads) {
        lock.lock();
        try {
            modelsByThreads.merge(threads, -1, (count, less) -> count + less == 0 ? null : count + less);
            applyThreads();
        } finally {
            lock.unlock();
        }
    }

    /** Sets the threads of OpenBLAS for the models that are loaded; returns whether their number changes. */
    @GuardedBy("lock")
    private boolean applyThreads() {
        int fewest = modelsByThreads.isEmpty() ? ANY : modelsByThreads.firstKey();
        int threads = openBlasThreads.orElse(fewest == ANY ? 1 : fewest);
        if (threads == applied) {
            return false;
        }
        library.openBlasThreads(threads);
        applied = threads;
        return true;
    }

    /** Sets a truth value for the process. */
    private interface Setter {
        boolean set(boolean value);
    }

    private static @Nullable Boolean apply(
            ModelContext context, String name, @Nullable Boolean before, Optional<Boolean> value, Setter setter) {
        if (value.isEmpty()) {
            return before;
        }
        setter.set(value.get());
        if (before != null && !before.equals(value.get())) {
            warn(
                    context,
                    name + ": " + value.get() + ", for all models of the process: an earlier one has set " + before);
        }
        return value.get();
    }

    @GuardedBy("lock")
    private void interOp(ModelContext context, int threads) {
        if (interOpThreads == null) {
            Optional<String> refusal = library.interOpThreads(threads);
            interOpThreads = library.interOpThreads();
            if (refusal.isEmpty()) {
                return;
            }
        }
        if (interOpThreads != threads) {
            warn(
                    context,
                    "INTER_OP_THREAD_COUNT: " + threads + " has no effect: the process has " + interOpThreads
                            + " threads since its first model (expected: the same for all models)");
        }
    }

    private static void warn(ModelContext context, String message) {
        context.logger().log(System.Logger.Level.WARNING, message);
    }
}
