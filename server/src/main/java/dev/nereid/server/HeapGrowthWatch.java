package dev.nereid.server;

import dev.nereid.api.ThreadStack;
import dev.nereid.scheduler.time.Watchdog;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Reports a heap that is nearly full after collections, before it is exhausted, with the thread that allocates most.
 * Confined to the thread of the watchdog.
 *
 * <p>The JVM does not know whose objects fill its heap. The thread that allocates most during the following seconds is a
 * hint: that of an instance is named after its model and version. Allocations are read only while the heap is nearly full.
 */
final class HeapGrowthWatch implements Watchdog.Watched {
    /** The part of the largest heap from which on it is nearly full, in percent. */
    static final int NEARLY_FULL_PERCENT = 85;

    /** The part of the largest heap below which it may be reported again, in percent. */
    static final int RELIEVED_PERCENT = 70;

    /** The checks from a nearly full heap to the report, during which allocations are compared. */
    static final int COMPARED_CHECKS = 3;

    private static final int PERCENT = 100;
    private static final Logger LOG = LoggerFactory.getLogger(HeapGrowthWatch.class);

    /** Reads the allocations of threads. */
    @FunctionalInterface
    interface Allocations {
        /** Returns how many bytes each platform thread has allocated since its start. */
        Map<Thread, Long> read();
    }

    /**
     * A heap that is nearly full.
     *
     * @param used the bytes in use after the last collection
     * @param max the largest heap in bytes
     * @param suspect the thread that allocates most; empty if none allocates
     * @param allocated what that has allocated meanwhile, in bytes
     */
    record Growth(long used, long max, Optional<Thread> suspect, long allocated) {}

    private final Supplier<HeapWatch.Heap> source;
    private final Allocations allocations;
    private HeapWatch.@Nullable Heap heap;
    private Map<Thread, Long> before = Map.of();
    private int checks;
    private int nearlyFull;

    /**
     * Watches a heap.
     *
     * @param source reads the statistics of the heap; called once, on the thread of the watchdog
     * @param allocations reads the allocations of threads
     */
    HeapGrowthWatch(Supplier<HeapWatch.Heap> source, Allocations allocations) {
        this.source = source;
        this.allocations = allocations;
    }

    @Override
    public void check(long nowNanos) {
        if (checks < HeapWatch.SKIPPED_CHECKS) {
            checks++;
            return;
        }
        look().ifPresent(HeapGrowthWatch::report);
    }

    /** Looks whether the heap has become nearly full; returns that once, until it is relieved. */
    Optional<Growth> look() {
        HeapWatch.Heap current = heap == null ? source.get() : heap;
        heap = current;
        long max = current.max();
        long used = current.usedAfterCollection();
        if (max <= 0 || used < max / PERCENT * RELIEVED_PERCENT) {
            nearlyFull = 0;
            before = Map.of();
        } else if (nearlyFull > 0 || used >= max / PERCENT * NEARLY_FULL_PERCENT) {
            return compare(used, max);
        }
        return Optional.empty();
    }

    private Optional<Growth> compare(long used, long max) {
        if (nearlyFull > COMPARED_CHECKS) {
            return Optional.empty(); // reported
        }
        nearlyFull++;
        if (nearlyFull == 1) {
            before = allocations.read();
        }
        if (nearlyFull <= COMPARED_CHECKS) {
            return Optional.empty();
        }
        Map<Thread, Long> grown = new HashMap<>();
        allocations.read().forEach((thread, bytes) -> grown.put(thread, bytes - before.getOrDefault(thread, 0L)));
        before = Map.of();
        Optional<Map.Entry<Thread, Long>> most =
                grown.entrySet().stream().filter(one -> one.getValue() > 0).max(Map.Entry.comparingByValue());
        return Optional.of(new Growth(
                used,
                max,
                most.map(Map.Entry::getKey),
                most.map(Map.Entry::getValue).orElse(0L)));
    }

    private static void report(Growth growth) {
        LOG.atWarn()
                .addKeyValue("usedBytes", growth.used())
                .addKeyValue("maxBytes", growth.max())
                .addKeyValue("thread", growth.suspect().map(Thread::getName).orElse("-"))
                .addKeyValue("allocatedBytes", growth.allocated())
                .setCause(growth.suspect()
                        .map(thread -> ThreadStack.of(thread, thread.getStackTrace()))
                        .orElse(null))
                .log("heap is nearly full after collections; the thread that allocates most follows");
    }
}
