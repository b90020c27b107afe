package dev.nereid.server.lifecycle;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.server.memory.ReportedMemory;
import java.lang.ref.WeakReference;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.RejectedExecutionException;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Asks backends again how much memory their models take. Safe for use by any thread; never blocks.
 *
 * <p>A refresh is asynchronous: its caller reads the last value, and a later reader the new one. The backend is called
 * with a lease on the generation, so never for a closed model. A call that fails or takes long leaves the last value, and
 * is logged once for each load.
 */
public final class MemoryRefresh {
    private static final Logger LOG = LoggerFactory.getLogger(MemoryRefresh.class);

    private final LiveGenerations live;
    private final Executor threads;
    private final LongSupplier nanoTime;
    private final FatalErrorHandler fatalErrors;

    /**
     * Creates a refresh for a server.
     *
     * @param live is notified of changes
     * @param threads run the calls of backends, which may block
     */
    public MemoryRefresh(LiveGenerations live, Executor threads, LongSupplier nanoTime, FatalErrorHandler fatalErrors) {
        this.live = live;
        this.threads = threads;
        this.nanoTime = nanoTime;
        this.fatalErrors = fatalErrors;
    }

    /** Begins to refresh the memory of a generation, unless that was done within a second or is being done. */
    public void request(Generation generation) {
        ReportedMemory memory = generation.model().memory();
        long now = nanoTime.getAsLong();
        if (memory.begin(now)) {
            begin(generation, memory);
        } else if (memory.isSlow(now)) {
            keep(generation, memory, null);
        }
    }

    private void begin(Generation generation, ReportedMemory memory) {
        WeakReference<Generation> reference = new WeakReference<>(generation); // may wait longer than the model lives
        try {
            threads.execute(() -> run(reference.get(), memory));
        } catch (RejectedExecutionException _) { // too many wait: a later request tries again
            memory.end();
        }
    }

    private void run(@Nullable Generation generation, ReportedMemory memory) {
        try {
            if (generation != null && generation.acquire()) {
                try {
                    call(generation, memory);
                } finally {
                    generation.release();
                }
            }
        } finally {
            memory.end();
        }
    }

    private void call(Generation generation, ReportedMemory memory) {
        memory.calling(nanoTime.getAsLong());
        try {
            memory.update(generation
                    .model()
                    .leased()
                    .map(owner -> owner.model().memoryUsage())
                    .orElse(List.of()));
            live.resize(generation);
        } catch (Throwable e) { // of a backend: models serve whatever it answers
            fatalErrors.check(e);
            keep(generation, memory, e);
        }
    }

    private static void keep(Generation generation, ReportedMemory memory, @Nullable Throwable failure) {
        if (memory.claimLog()) {
            String name = generation.model().config().getName();
            LOG.atWarn()
                    .addKeyValue("model", name)
                    .addKeyValue("version", generation.model().version())
                    .setCause(failure)
                    .log(text(name, failure));
        }
    }

    /** Returns why the last value is kept: the backend takes long, or has failed. */
    static String text(String model, @Nullable Throwable failure) {
        String reason = "takes long to return memoryUsage, and a close of the model waits for it";
        if (failure != null) {
            reason = "failed in memoryUsage: " + (failure.getMessage() == null ? failure : failure.getMessage());
        }
        return "the backend of model '" + model + "' " + reason + "; the last value of its memory is kept";
    }
}
