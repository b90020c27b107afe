package dev.nereid.server.memory;

import dev.nereid.scheduler.time.Watchdog;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Returns memory to the operating system when the server has had neither requests nor loads for a while. Confined to
 * the thread of the watchdog, except for the return, which is on another thread.
 *
 * <p>A server keeps what its next requests need: idle tensors, the empty part of the heap, and what backends and the JVM
 * have freed in the C library. It is returned once in each time without requests, since the heap is collected for it.
 */
public final class IdleMemory implements Watchdog.Watched {
    /** The bytes in use up to which the heap is collected: that of a larger one would stop all threads for too long. */
    private static final long MAX_COLLECTED_BYTES = 256L << 20;

    private static final Logger LOG = LoggerFactory.getLogger(IdleMemory.class);

    private final long idleNanos;
    private final LongSupplier lastUse;
    private final List<Runnable> returns;
    private final Executor threads;

    private boolean returned;

    /** The last use before the memory was returned, if it was. */
    private long returnedNanos;

    /**
     * Creates the check.
     *
     * @param idle the time without requests and loads after which memory is returned
     * @param lastUse returns when the last of both was, on the scale of {@link System#nanoTime()}
     * @param returns each returns memory of one kind; may take long
     * @param threads executes them
     */
    IdleMemory(Duration idle, LongSupplier lastUse, List<Runnable> returns, Executor threads) {
        this.idleNanos = idle.toNanos();
        this.lastUse = lastUse;
        this.returns = List.copyOf(returns);
        this.threads = threads;
    }

    /** Creates the check of the process: of a pool, the heap and the C library. */
    public static IdleMemory ofTheProcess(Duration idle, LongSupplier lastUse, TensorPool pool) {
        return new IdleMemory(
                idle,
                lastUse,
                List.of(
                        pool::freeIdle,
                        IdleMemory::collect,
                        () -> NativeHeapTrimmer.NativeHeap.ofTheProcess()
                                .ifPresent(NativeHeapTrimmer.NativeHeap::trim)),
                task -> Thread.ofPlatform().daemon().name("idle-memory").start(task));
    }

    private static void collect() {
        Runtime runtime = Runtime.getRuntime();
        if (runtime.totalMemory() - runtime.freeMemory() <= MAX_COLLECTED_BYTES) {
            System.gc();
        }
    }

    @Override
    public void check(long nowNanos) {
        long last = lastUse.getAsLong();
        if (nowNanos - last >= idleNanos && !(returned && last == returnedNanos)) {
            returned = true;
            returnedNanos = last;
            threads.execute(this::returnAll);
        }
    }

    private void returnAll() {
        long start = System.nanoTime();
        for (Runnable one : returns) {
            try {
                one.run();
            } catch (RuntimeException e) { // the others return what they have
                LOG.warn("memory not returned", e);
            }
        }
        LOG.debug("returned idle memory in {} ms", TimeUnit.NANOSECONDS.toMillis(System.nanoTime() - start));
    }
}
