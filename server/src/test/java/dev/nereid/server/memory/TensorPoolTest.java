package dev.nereid.server.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.ErrorCode;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Random;
import java.util.Set;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class TensorPoolTest {
    private static final long MIB = 1L << 20;

    @ParameterizedTest
    @ValueSource(longs = {0, 1, 63, 64, 65, 1024, 1025, 600 * 1024, 64 * MIB, 64 * MIB + 1})
    void allocatesExactlyTheRequestedSizeAligned(long size) {
        try (TensorPool pool = new TensorPool(256 * MIB, MIB);
                TensorBuffer buffer = pool.allocate(size)) {
            assertThat(buffer.segment().byteSize()).isEqualTo(size);
            assertThat(buffer.segment().address() % 64).isZero();
            assertThat(pool.bytesInUse()).isEqualTo(size);
        }
    }

    @Test
    void countsWhatIsHandedOut() {
        try (TensorPool pool = new TensorPool(256 * MIB, MIB)) {
            TensorBuffer small = pool.allocate(100);
            TensorBuffer large = pool.allocate(100 * MIB);
            assertThat(pool.bytesInUse()).isEqualTo(100 + 100 * MIB);

            small.close();
            assertThat(pool.bytesInUse()).isEqualTo(100 * MIB);
            large.close();
            assertThat(pool.bytesInUse()).isZero();
        }
    }

    @Test
    void reusesMemoryAndNeverHandsOutAPieceTwice() {
        try (TensorPool pool = new TensorPool(256 * MIB, 16 * MIB)) {
            Set<Long> first = addresses(pool, 1000);
            long kept = pool.bytesIdle();
            Set<Long> second = addresses(pool, 1000);

            assertThat(first).hasSize(1000).isEqualTo(second);
            assertThat(pool.bytesIdle()).isEqualTo(kept);
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {0, 10, 600 * 1024, 65 * MIB})
    void refusesToTakeABufferBackTwice(long size) {
        try (TensorPool pool = new TensorPool(256 * MIB, MIB)) {
            TensorBuffer buffer = pool.allocate(size);
            buffer.close();

            assertThatThrownBy(buffer::close)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageContaining(size + " bytes");
            assertThat(pool.bytesInUse()).isZero();
        }
    }

    @Test
    void refusesToTakeABufferBackThatAnotherHolderHasNow() {
        try (TensorPool pool = new TensorPool(256 * MIB, MIB)) {
            TensorBuffer stale = pool.allocate(1024);
            long address = stale.segment().address();
            stale.close();
            TensorBuffer current = pool.allocate(1024);

            assertThat(current.segment().address()).isEqualTo(address);
            assertThatThrownBy(stale::close).isInstanceOf(IllegalStateException.class);
            assertThat(pool.bytesInUse()).isEqualTo(1024);
            current.close();
        }
    }

    @Test
    void checksTheLimitBeforeItAllocates() {
        try (TensorPool pool = new TensorPool(1000, MIB);
                TensorBuffer held = pool.allocate(400)) {
            assertThatThrownBy(() -> pool.allocate(601))
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                    .hasMessage("no memory for a tensor of 601 bytes: 400 bytes of at most 1000 are in use");
            assertThatThrownBy(() -> pool.allocate(Long.MAX_VALUE)).isInstanceOf(InferenceException.class);
            assertThat(pool.bytesInUse()).isEqualTo(held.segment().byteSize());

            pool.allocate(600).close();
        }
    }

    @Test
    void failsWithUnavailableWhenTheSystemHasNoMemory() {
        try (TensorPool pool = new TensorPool(Long.MAX_VALUE, MIB)) {
            assertThatThrownBy(() -> pool.allocate(1L << 47))
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.UNAVAILABLE))
                    .hasMessageStartingWith("out of memory for a tensor of 140737488355328 bytes");
            assertThat(pool.bytesInUse()).isZero();
        }
    }

    @Test
    void rejectsNegativeSizes() {
        try (TensorPool pool = new TensorPool(1000, MIB)) {
            assertThatThrownBy(() -> pool.allocate(-1))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessage("byteSize: -1 (expected: >= 0)");
        }
        assertThatThrownBy(() -> new TensorPool(-1, 0)).hasMessage("limit: -1 (expected: >= 0)");
        assertThatThrownBy(() -> new TensorPool(0, -1)).hasMessage("idleLimit: -1 (expected: >= 0)");
    }

    @Test
    void keepsNoMoreIdleMemoryThanItMay() {
        try (TensorPool pool = new TensorPool(256 * MIB, 4 * MIB)) {
            List<TensorBuffer> buffers = new ArrayList<>();
            for (int i = 0; i < 20; i++) {
                buffers.add(pool.allocate(MIB));
                buffers.add(pool.allocate(3000));
            }
            buffers.forEach(TensorBuffer::close);

            assertThat(pool.bytesIdle()).isPositive().isLessThanOrEqualTo(4 * MIB);
        }
    }

    @Test
    void freesMemoryThatIsNotKept() {
        try (TensorPool pool = new TensorPool(256 * MIB, 0)) {
            TensorBuffer buffer = pool.allocate(1024);
            MemorySegment segment = buffer.segment();
            buffer.close();

            assertThat(pool.bytesIdle()).isZero();
            assertThat(segment.scope().isAlive()).isFalse();
        }
    }

    @Test
    void letsBuffersOutliveThePool() {
        TensorPool pool = new TensorPool(256 * MIB, 16 * MIB);
        pool.allocate(MIB).close();
        TensorBuffer late = pool.allocate(1024);
        pool.close();

        assertThat(pool.bytesIdle()).isLessThan(256 * 1024);
        late.segment().set(ValueLayout.JAVA_BYTE, 0, (byte) 7);
        MemorySegment segment = late.segment();
        late.close();
        assertThat(segment.scope().isAlive()).isFalse();
        assertThat(pool.bytesIdle()).isZero();
        assertThat(pool.bytesInUse()).isZero();
    }

    /** Producers fill buffers and pass them on; consumers check that no other thread wrote to them and close them. */
    @Test
    void keepsBuffersApartWhenManyThreadsUseThem() throws Exception {
        try (TensorPool pool = new TensorPool(512 * MIB, MIB);
                ExecutorService threads = Executors.newFixedThreadPool(8)) {
            BlockingQueue<TensorBuffer> handedOver = new ArrayBlockingQueue<>(64);
            List<Future<?>> done = new ArrayList<>();
            for (int i = 0; i < 4; i++) {
                int seed = i;
                done.add(threads.submit(() -> produce(pool, handedOver, new Random(seed))));
                done.add(threads.submit(() -> consume(handedOver)));
            }
            for (Future<?> each : done) {
                each.get();
            }

            assertThat(pool.bytesInUse()).isZero();
            assertThat(pool.bytesIdle()).isLessThanOrEqualTo(MIB);
        }
    }

    private static final int HANDED_OVER = 5000;

    private static boolean produce(TensorPool pool, BlockingQueue<TensorBuffer> out, Random random)
            throws InterruptedException {
        long[] sizes = {8, 100, 1024, 1024, 5000, 70_000, 600 * 1024};
        for (int i = 0; i < HANDED_OVER; i++) {
            TensorBuffer buffer = pool.allocate(sizes[random.nextInt(sizes.length)]);
            MemorySegment segment = buffer.segment();
            long mark = segment.address() * 31 + i;
            segment.set(ValueLayout.JAVA_LONG_UNALIGNED, 0, mark);
            segment.set(ValueLayout.JAVA_LONG_UNALIGNED, segment.byteSize() - Long.BYTES, mark);
            out.put(buffer);
        }
        return true;
    }

    private static boolean consume(BlockingQueue<TensorBuffer> in) throws InterruptedException {
        for (int i = 0; i < HANDED_OVER; i++) {
            TensorBuffer buffer = in.take();
            MemorySegment segment = buffer.segment();
            assertThat(segment.get(ValueLayout.JAVA_LONG_UNALIGNED, 0))
                    .isEqualTo(segment.get(ValueLayout.JAVA_LONG_UNALIGNED, segment.byteSize() - Long.BYTES));
            buffer.close();
        }
        return true;
    }

    private static Set<Long> addresses(TensorPool pool, int count) {
        List<TensorBuffer> buffers = new ArrayList<>();
        Set<Long> addresses = new HashSet<>();
        for (int i = 0; i < count; i++) {
            TensorBuffer buffer = pool.allocate(1000);
            buffers.add(buffer);
            addresses.add(buffer.segment().address());
        }
        buffers.forEach(TensorBuffer::close);
        return addresses;
    }
}
