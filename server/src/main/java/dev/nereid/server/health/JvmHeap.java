package dev.nereid.server.health;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.lang.management.MemoryPoolMXBean;
import java.lang.management.MemoryType;
import java.lang.management.MemoryUsage;
import java.util.Arrays;
import java.util.List;

/** Reads heap statistics of this JVM from its management beans. Immutable. */
final class JvmHeap implements HeapWatch.Heap {
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
