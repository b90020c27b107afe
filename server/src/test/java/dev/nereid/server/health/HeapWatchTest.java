package dev.nereid.server.health;

import static org.assertj.core.api.Assertions.assertThat;

import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;

/** A heap that stays full after collections. */
final class HeapWatchTest {
    private static final long MAX = 1_000;

    private final List<OutOfMemoryError> fatal = new ArrayList<>();
    private final FakeHeap heap = new FakeHeap();
    private final HeapWatch watch = new HeapWatch(() -> heap, fatal::add);

    HeapWatchTest() {
        check(HeapWatch.SKIPPED_CHECKS);
    }

    @Test
    void isReportedOnceIfItStaysFull() {
        heap.used = MAX;

        check(HeapWatch.MIN_FULL_CHECKS - 1);
        assertThat(fatal).isEmpty();
        check(HeapWatch.MIN_FULL_CHECKS);

        assertThat(fatal)
                .singleElement()
                .extracting(Throwable::getMessage)
                .asString()
                .startsWith("Java heap space");
    }

    @Test
    void isNotReportedIfMemoryIsFreeInTime() {
        heap.used = MAX;
        check(HeapWatch.MIN_FULL_CHECKS - 1);

        heap.used = MAX / 2;
        check(1);
        heap.used = MAX;
        check(HeapWatch.MIN_FULL_CHECKS - 1);

        assertThat(fatal).isEmpty();
    }

    @Test
    void isNotFullIfACollectionFreesMemory() {
        for (int i = 0; i < 2 * HeapWatch.MIN_FULL_CHECKS; i++) {
            heap.used = i % HeapWatch.MIN_FULL_CHECKS == 0 ? MAX / 2 : MAX;
            check(1);
        }

        assertThat(fatal).isEmpty();
    }

    @Test
    void isNotFullWhileNothingIsCollected() {
        heap.used = MAX;
        heap.perCheck = 0;

        check(10 * HeapWatch.MIN_FULL_CHECKS);

        assertThat(fatal).isEmpty();
    }

    @Test
    void readsTheHeapOfThisProcess() {
        HeapWatch.JvmHeap own = new HeapWatch.JvmHeap();
        long before = own.collections();

        System.gc();

        assertThat(own.collections()).isGreaterThan(before);
        assertThat(own.usedAfterCollection()).isPositive().isLessThan(own.max());
    }

    private void check(int times) {
        for (int i = 0; i < times; i++) {
            heap.collections += heap.perCheck;
            watch.check(0);
        }
    }

    private static final class FakeHeap implements HeapWatch.Heap {
        private long collections;
        private long perCheck = 1;
        private long used;

        @Override
        public long collections() {
            return collections;
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
