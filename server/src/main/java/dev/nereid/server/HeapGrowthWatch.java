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
 * hint: that of an instance is named after its model and version. If it allocates as much as all others together, it is
 * passed on, so that its model is not ready until the heap is relieved, or for a minute: without requests the heap may not
 * be collected, and the hint may be wrong. Allocations are read only while the heap is nearly full.
 */
final class HeapGrowthWatch implements Watchdog.Watched {
    /** The part of the largest heap from which on it is nearly full, in percent. */
    static final int NEARLY_FULL_PERCENT = 85;

    /** The part of the largest heap below which it may be reported again, in percent. */
    static final int RELIEVED_PERCENT = 70;

    /** The checks from a nearly full heap to the report, during which allocations are compared. */
    static final int COMPARED_CHECKS = 3;

    /** The checks after a report until the threads are compared again. */
    static final int REPEATED_CHECKS = 60;

    private static final int PERCENT = 100;
    private static final Logger LOG = LoggerFactory.getLogger(HeapGrowthWatch.class);

    /** Reads the allocations of threads. */
    @FunctionalInterface
    interface Allocations {
        /** Returns how many bytes each platform thread has allocated since its start. */
        Map<Thread, Long> read();
    }

    /** Takes note of the thread that probably fills the heap. Called on the thread of the watchdog. */
    interface Suspects {
        /**
         * A thread allocates as much as all others together.
         *
         * @param thread the thread
         * @param problem the state of the heap, in words for the index of the repository
         */
        void found(Thread thread, String problem);

        /** No thread is suspected any more. */
        void none();
    }

    /**
     * A heap that is nearly full.
     *
     * @param used the bytes in use after the last collection
     * @param max the largest heap in bytes
     * @param suspect the thread that allocates most; empty if none allocates
     * @param allocated what that has allocated meanwhile, in bytes
     * @param all what all threads have allocated meanwhile, in bytes
     */
    record Growth(long used, long max, Optional<Thread> suspect, long allocated, long all) {
        private boolean isClear() {
            return allocated >= all / 2;
        }

        private String problem() {
            return "heap is nearly full after collections: " + used + " of " + max + " bytes";
        }
    }

    private final Supplier<HeapWatch.Heap> source;
    private final Allocations allocations;
    private final Suspects suspects;
    private HeapWatch.@Nullable Heap heap;
    private Map<Thread, Long> before = Map.of();
    private int checks;
    private int nearlyFull;

    /**
     * Watches a heap.
     *
     * @param source reads the statistics of the heap; called once, on the thread of the watchdog
     * @param allocations reads the allocations of threads
     * @param suspects receives the thread that probably fills it
     */
    HeapGrowthWatch(Supplier<HeapWatch.Heap> source, Allocations allocations, Suspects suspects) {
        this.source = source;
        this.allocations = allocations;
        this.suspects = suspects;
    }

    @Override
    public void check(long nowNanos) {
        if (checks < HeapWatch.SKIPPED_CHECKS) {
            checks++;
            return;
        }
        look().ifPresent(HeapGrowthWatch::report);
    }

    /** Looks whether the heap has become nearly full; returns that once a minute, until it is relieved. */
    Optional<Growth> look() {
        HeapWatch.Heap current = heap == null ? source.get() : heap;
        heap = current;
        long max = current.max();
        long used = current.usedAfterCollection();
        if (max <= 0 || used < max / PERCENT * RELIEVED_PERCENT) {
            forget();
        } else if (nearlyFull > 0 || used >= max / PERCENT * NEARLY_FULL_PERCENT) {
            return compare(used, max);
        }
        return Optional.empty();
    }

    private void forget() {
        if (nearlyFull > COMPARED_CHECKS) {
            suspects.none();
        }
        nearlyFull = 0;
        before = Map.of();
    }

    private Optional<Growth> compare(long used, long max) {
        nearlyFull++;
        if (nearlyFull > COMPARED_CHECKS + 1) { // reported
            if (nearlyFull > COMPARED_CHECKS + REPEATED_CHECKS) {
                forget();
            }
            return Optional.empty();
        }
        if (nearlyFull == 1) {
            before = allocations.read();
        }
        if (nearlyFull <= COMPARED_CHECKS) {
            return Optional.empty();
        }
        Map<Thread, Long> grown = new HashMap<>();
        allocations.read().forEach((thread, bytes) -> grown.put(thread, bytes - before.getOrDefault(thread, 0L)));
        grown.remove(Thread.currentThread()); // this comparison allocates too
        before = Map.of();
        Optional<Map.Entry<Thread, Long>> most =
                grown.entrySet().stream().filter(one -> one.getValue() > 0).max(Map.Entry.comparingByValue());
        Growth growth = new Growth(
                used,
                max,
                most.map(Map.Entry::getKey),
                most.map(Map.Entry::getValue).orElse(0L),
                grown.values().stream().mapToLong(Long::longValue).sum());
        if (growth.isClear()) {
            growth.suspect().ifPresent(thread -> suspects.found(thread, growth.problem()));
        }
        return Optional.of(growth);
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
                .log(
                        "heap is nearly full after collections; the thread that allocates most follows (thread '{}')",
                        growth.suspect().map(Thread::getName).orElse("-"));
    }
}
