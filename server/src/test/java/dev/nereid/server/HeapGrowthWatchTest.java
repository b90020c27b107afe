package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** A heap that grows, and the thread that is named for it. */
final class HeapGrowthWatchTest {
    private static final long MAX = 1_000;

    private final FakeHeap heap = new FakeHeap();
    private final Map<Thread, Long> allocated = new HashMap<>();
    private final List<String> suspected = new ArrayList<>();
    private final HeapGrowthWatch watch =
            new HeapGrowthWatch(() -> heap, () -> Map.copyOf(allocated), new HeapGrowthWatch.Suspects() {
                @Override
                public void found(Thread thread, String problem) {
                    suspected.add(thread.getName() + ": " + problem);
                }

                @Override
                public void none() {
                    suspected.add("none");
                }
            });

    @Test
    void namesTheThreadThatAllocatesMostOnceTheHeapIsNearlyFull() {
        Thread busy = thread("instance/busy/1/busy_0");
        Thread leaking = thread("instance/leaking/1/leaking_0");
        allocated.putAll(Map.of(busy, 10_000L, leaking, 5L));
        heap.used = 849;
        look(10);
        heap.used = 850;
        look(HeapGrowthWatch.COMPARED_CHECKS);
        allocated.putAll(Map.of(busy, 10_100L, leaking, 205L));

        HeapGrowthWatch.Growth growth = watch.look().orElseThrow();

        assertThat(growth.suspect()).contains(leaking);
        assertThat(growth.allocated()).isEqualTo(200);
        assertThat(growth.used()).isEqualTo(850);
        assertThat(growth.max()).isEqualTo(MAX);
        assertThat(suspected)
                .containsExactly(
                        "instance/leaking/1/leaking_0: heap is nearly full after collections: 850 of 1000 bytes");
        look(1);
        heap.used = 699;
        look(2);
        assertThat(suspected).hasSize(2).endsWith("none");
    }

    @Test
    void suspectsNoThreadThatAllocatesLessThanTheOthers() {
        Thread one = thread("instance/one/1/one_0");
        Thread two = thread("instance/two/1/two_0");
        Thread three = thread("instance/three/1/three_0");
        allocated.putAll(Map.of(one, 0L, two, 0L, three, 0L));
        heap.used = 900;
        look(HeapGrowthWatch.COMPARED_CHECKS);
        allocated.putAll(Map.of(one, 99L, two, 51L, three, 51L));

        assertThat(watch.look().orElseThrow().suspect()).contains(one);
        assertThat(suspected).isEmpty();
    }

    /** Without requests nothing is collected, and the suspicion may be wrong. */
    @Test
    void comparesAgainAfterAMinute() {
        Thread leaking = thread("instance/leaking/1/leaking_0");
        heap.used = 900;
        for (int i = 1; i <= 2; i++) {
            allocated.put(leaking, 100L * i);
            look(HeapGrowthWatch.COMPARED_CHECKS);
            allocated.put(leaking, 100L * i + 50);
            assertThat(watch.look()).isPresent();
            assertThat(suspected).hasSize(2 * i - 1);
            look(HeapGrowthWatch.REPEATED_CHECKS);
            assertThat(suspected).hasSize(2 * i).endsWith("none");
        }
    }

    @Test
    void reportsAgainOnlyAfterMemoryWasFreed() {
        heap.used = 900;
        look(HeapGrowthWatch.COMPARED_CHECKS);
        assertThat(watch.look()).isPresent();
        look(10);
        heap.used = 700;
        look(1);
        heap.used = 900;
        look(10);

        heap.used = 699;
        look(1);
        heap.used = 900;
        look(HeapGrowthWatch.COMPARED_CHECKS);
        assertThat(watch.look()).isPresent();
    }

    @Test
    void readsTheAllocationsOfThreads() {
        long before = ThreadAllocations.read().get(Thread.currentThread());
        byte[] kept = new byte[1 << 20];

        assertThat(ThreadAllocations.read().get(Thread.currentThread())).isGreaterThanOrEqualTo(before + kept.length);
    }

    private void look(int times) {
        for (int i = 0; i < times; i++) {
            assertThat(watch.look()).isEmpty();
        }
    }

    private static Thread thread(String name) {
        return Thread.ofPlatform().name(name).unstarted(() -> {});
    }

    /** A heap of a set size. */
    private static final class FakeHeap implements HeapWatch.Heap {
        private long used;

        @Override
        public long collections() {
            return 0;
        }

        @Override
        public long usedAfterCollection() {
            return used;
        }

        @Override
        public long max() {
            return MAX;
        }
    }
}
