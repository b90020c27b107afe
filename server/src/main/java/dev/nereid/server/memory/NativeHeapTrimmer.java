package dev.nereid.server.memory;

import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.LongSupplier;

/**
 * Returns memory that backends have freed to the operating system. Safe for use by any thread; never blocks.
 *
 * <p>The C library keeps freed memory for later allocations, so that the process would stay as large after the unload
 * of a model as it was before. Returning it takes time that grows with the heap, and other threads may wait meanwhile.
 * It is therefore done once for all memory that is freed within a second, on a separate thread, and for a small share
 * of the time.
 */
public final class NativeHeapTrimmer implements AutoCloseable {
    private static final long DELAY_NANOS = TimeUnit.SECONDS.toNanos(1);

    /** The pause after a trim is at least so many times as long as the trim. */
    private static final long PAUSE_FACTOR = 50;

    private final Runnable trim;
    private final LongSupplier nanoTime;
    private final Executor threads;
    private final Timeout timeout;
    private final AtomicBoolean trimming = new AtomicBoolean();

    /** When the next trim may begin. Written by the trimming thread. */
    private volatile long nextNanos;

    /**
     * Creates a trimmer.
     *
     * @param trim returns freed memory; may take long
     * @param threads runs the trims
     */
    NativeHeapTrimmer(Runnable trim, LongSupplier nanoTime, Timer timer, Executor threads) {
        this.trim = trim;
        this.nanoTime = nanoTime;
        this.threads = threads;
        nextNanos = nanoTime.getAsLong();
        timeout = timer.newTimeout(this::begin);
    }

    /** Creates the trimmer of the process, which does nothing if its C library cannot trim. */
    public static NativeHeapTrimmer ofTheProcess(LongSupplier nanoTime, Timer timer) {
        return new NativeHeapTrimmer(
                // Looked up by each trim, so that the start does not wait for it.
                () -> NativeHeap.ofTheProcess().ifPresent(NativeHeap::trim),
                nanoTime,
                timer,
                // A platform thread, since a virtual one would keep its carrier meanwhile.
                task -> Thread.ofPlatform().daemon().name("trim").start(task));
    }

    /** Returns freed memory soon. Called after a backend has freed much. */
    public void freed() {
        long soon = nanoTime.getAsLong() + DELAY_NANOS;
        long next = nextNanos;
        timeout.scheduleAtLatest(next - soon > 0 ? next : soon);
    }

    private void begin() {
        if (trimming.compareAndSet(false, true)) {
            threads.execute(this::trim);
        } else {
            freed();
        }
    }

    private void trim() {
        long started = nanoTime.getAsLong();
        try {
            trim.run();
        } finally {
            long ended = nanoTime.getAsLong();
            nextNanos = ended + PAUSE_FACTOR * (ended - started);
            trimming.set(false);
        }
    }

    /** Begins no further trim. */
    @Override
    public void close() {
        timeout.close();
    }
}
