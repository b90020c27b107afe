package dev.nereid.server.health;

import dev.nereid.api.BestEffort;
import dev.nereid.api.FatalErrorHandler;
import dev.nereid.api.memory.GpuAccess;
import dev.nereid.scheduler.time.Watchdog;
import dev.nereid.server.options.SupervisionOptions;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Tracks exhausted memory, ended threads and failed GPUs, which make the server not live. Safe for use by any thread.
 */
public final class Health implements FatalErrorHandler {
    private static final Logger LOG = LoggerFactory.getLogger(Health.class);

    /** The reason for refusals once heap, metaspace or threads were exhausted. */
    public static final String EXHAUSTED = "out of memory: the server has to be started again";

    private static final int MAX_RESERVE_BYTES = 4 << 20;
    private static final int RESERVE_PART = 32;
    private static final int RESERVE_PIECE = 16 << 10;

    private final SupervisionOptions options;
    private final GpuAccess gpus;
    private final HeapWatch heap = new HeapWatch(HeapWatch.JvmHeap::new, this);

    /** Set when heap, metaspace or threads were exhausted. After that the server only refuses requests and can be closed. */
    private volatile boolean exhausted;

    /** Heap that is released once memory is exhausted, for refusals and the close. In pieces, which fit anywhere. */
    private final AtomicReference<byte @Nullable [][]> reserve = new AtomicReference<>(reserve());

    /** Set when a permanent thread has ended. Nothing starts another one. */
    private volatile boolean threadEnded;

    /** Creates the health of a server, which is good. */
    public Health(SupervisionOptions options, GpuAccess gpus) {
        this.options = options;
        this.gpus = gpus;
    }

    /** Makes the server not live for good. Any thread may have lost what it did. */
    @Override
    public void onFatalError(OutOfMemoryError error) {
        exhausted = true;
        options.fatalErrors().onFatalError(error); // before the log: it may end the process, and needs no memory
        if (reserve.getAndSet(null) != null) {
            report(error);
        }
    }

    private static void report(OutOfMemoryError error) {
        try {
            LOG.atError()
                    .addKeyValue("reason", error.getMessage())
                    .log("out of memory: the server refuses requests, and has to be started again");
        } catch (RuntimeException | OutOfMemoryError e) {
            // The health of the server reports the same.
        }
    }

    private static byte[][] reserve() {
        long bytes = Math.min(MAX_RESERVE_BYTES, Runtime.getRuntime().maxMemory() / RESERVE_PART);
        return new byte[(int) (bytes / RESERVE_PIECE)][RESERVE_PIECE];
    }

    /** Makes the server not live for good: what the thread did is not done. */
    @Override
    public void onThreadEnded(String thread) {
        threadEnded = true; // first: there may be no memory for the rest
        LOG.atError().addKeyValue("thread", thread).log("permanent thread has ended: the server is not live any more");
        BestEffort.run("end of a thread", () -> options.fatalErrors().onThreadEnded(thread));
    }

    /** Returns the watch of the heap, which a watchdog has to check. */
    public Watchdog.Watched heap() {
        return heap;
    }

    /** Returns whether heap, metaspace or threads were exhausted. */
    public boolean isExhausted() {
        return exhausted;
    }

    /** Returns whether the server is live. */
    public boolean isGood() {
        return !exhausted && !threadEnded && gpus.failure().isEmpty();
    }
}
