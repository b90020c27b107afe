package dev.nereid.server.memory;

import dev.nereid.scheduler.time.Watchdog;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.time.Duration;
import java.util.List;
import java.util.OptionalLong;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.function.LongUnaryOperator;
import java.util.regex.Pattern;
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
    /** The bytes beside the young generation up to which the heap is collected: more would stop all threads too long. */
    private static final long MAX_COLLECTED_BYTES = 256L << 20;

    /** The names of pools of which a collection is short. */
    private static final Pattern YOUNG = Pattern.compile("Eden|Survivor|Young");

    private static final Logger LOG = LoggerFactory.getLogger(IdleMemory.class);

    private final long idleNanos;
    private final LongUnaryOperator lastUse;
    private final List<Runnable> returns;
    private final Executor threads;

    /** The last use of all that were seen; it is not known before the first check. */
    private OptionalLong usedNanos = OptionalLong.empty();

    /** {@code true} if memory was returned since the last use. */
    private boolean returned;

    /**
     * Creates the check.
     *
     * @param idle the time without requests and loads after which memory is returned
     * @param lastUse returns when the last of both was for a time, on the scale of {@link System#nanoTime()}: that time
     *     while there are any
     * @param returns each returns memory of one kind; may take long
     * @param threads executes them
     */
    IdleMemory(Duration idle, LongUnaryOperator lastUse, List<Runnable> returns, Executor threads) {
        this.idleNanos = idle.toNanos();
        this.lastUse = lastUse;
        this.returns = List.copyOf(returns);
        this.threads = threads;
    }

    /** Creates the check of the process: of a pool, the heap and the C library. */
    public static IdleMemory ofTheProcess(Duration idle, LongUnaryOperator lastUse, TensorPool pool) {
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
        long used = 0;
        for (MemoryPoolMXBean pool : ManagementFactory.getMemoryPoolMXBeans()) {
            if (pool.getType() == MemoryType.HEAP
                    && !YOUNG.matcher(pool.getName()).find()) {
                used += pool.getUsage().getUsed();
            }
        }
        if (used <= MAX_COLLECTED_BYTES) {
            System.gc();
        }
    }

    @Override
    public void check(long nowNanos) {
        long last = lastUse.applyAsLong(nowNanos);
        if (usedNanos.isEmpty() || last - usedNanos.getAsLong() > 0) { // a model that is unloaded does not put it back
            usedNanos = OptionalLong.of(last);
            returned = false;
        }
        if (!returned && nowNanos - usedNanos.getAsLong() >= idleNanos) {
            returned = true;
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
