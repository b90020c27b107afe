package dev.nereid.server.health;

import dev.nereid.api.FatalErrorHandler;
import dev.nereid.scheduler.time.Watchdog;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.util.Arrays;
import java.util.List;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Detects a heap that stays full after collections, and logs one that is nearly full. Works without an error that was
 * caught or reported. Confined to the thread of the watchdog.
 */
final class HeapWatch implements Watchdog.Watched {
    /**
     * The number of consecutive checks that have to find the heap full. There is a collection between each and the
     * next.
     */
    static final int MIN_FULL_CHECKS = 10;

    /** The checks that are left out, so that the start does not wait for the beans. */
    static final int SKIPPED_CHECKS = 5;

    /** The part of the largest heap from which on it is full, in percent. */
    private static final int FULL_PERCENT = 97;

    /** The part of the largest heap from which on it is nearly full, in percent. */
    private static final int NEARLY_FULL_PERCENT = 85;

    /** The part of the largest heap below which it may be nearly full again, in percent. */
    private static final int RELIEVED_PERCENT = 70;

    private static final int PERCENT = 100;
    private static final Logger LOG = LoggerFactory.getLogger(HeapWatch.class);

    /** Statistics of the heap. */
    interface Heap {
        /** Returns how often the whole heap was collected. */
        long collections();

        /** Returns how many bytes were in use after the last of these collections. */
        long usedAfterCollection();

        /** Returns the largest heap in bytes; below 0 if it is unknown. */
        long max();
    }

    private final FatalErrorHandler fatalErrors;
    private final Supplier<Heap> source;
    private final OutOfMemoryError error = new OutOfMemoryError("Java heap space: full after each collection");
    private @Nullable Heap heap;
    private int checks;
    private long collections;
    private int consecutiveFull;
    private boolean nearlyFull;

    /**
     * Watches a heap.
     *
     * @param source reads the statistics of the heap; called once, on the thread of the watchdog
     * @param fatalErrors notified that the heap is full
     */
    HeapWatch(Supplier<Heap> source, FatalErrorHandler fatalErrors) {
        this.source = source;
        this.fatalErrors = fatalErrors;
    }

    @Override
    public void check(long nowNanos) {
        if (checks < SKIPPED_CHECKS) {
            checks++;
            return;
        }
        if (heap == null) {
            heap = source.get();
        }
        evaluate(heap);
    }

    private void evaluate(Heap current) {
        long before = collections;
        collections = current.collections();
        long max = current.max();
        long used = current.usedAfterCollection();
        if (max <= 0) {
            return;
        }
        consecutiveFull = collections > before && used >= max / PERCENT * FULL_PERCENT ? consecutiveFull + 1 : 0;
        if (consecutiveFull == MIN_FULL_CHECKS) {
            fatalErrors.onFatalError(error);
        }
        if (used < max / PERCENT * RELIEVED_PERCENT) {
            nearlyFull = false;
        } else if (!nearlyFull && used >= max / PERCENT * NEARLY_FULL_PERCENT) {
            nearlyFull = true;
            LOG.atWarn()
                    .addKeyValue("usedBytes", used)
                    .addKeyValue("maxBytes", max)
                    .log("heap is nearly full after collections: {} of {} bytes", used, max);
        }
    }

    /** Reads heap statistics of this JVM from its management beans. Immutable. */
    static final class JvmHeap implements HeapWatch.Heap {
        private final List<MemoryPoolMXBean> pools = ManagementFactory.getMemoryPoolMXBeans().stream()
                .filter(pool -> pool.getType() == MemoryType.HEAP && pool.isCollectionUsageThresholdSupported())
                .toList();

        /** The collectors that collect all pools of the heap that are collected at all. */
        private final List<GarbageCollectorMXBean> collectors = ManagementFactory.getGarbageCollectorMXBeans().stream()
                .filter(this::collectsAll)
                .toList();

        private boolean collectsAll(GarbageCollectorMXBean collector) {
            List<String> names = Arrays.asList(collector.getMemoryPoolNames());
            return pools.stream().map(MemoryPoolMXBean::getName).allMatch(names::contains);
        }

        @Override
        public long collections() {
            long count = 0;
            for (GarbageCollectorMXBean collector : collectors) {
                count += Math.max(0, collector.getCollectionCount());
            }
            return count;
        }

        @Override
        public long usedAfterCollection() {
            long used = 0;
            for (MemoryPoolMXBean pool : pools) {
                MemoryUsage usage = pool.getCollectionUsage();
                used += usage == null ? 0 : usage.getUsed();
            }
            return used;
        }

        @Override
        public long max() {
            return Runtime.getRuntime().maxMemory();
        }
    }
}
