package dev.nereid.server.memory;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.GrowingBuffer;
import dev.nereid.api.memory.TensorBuffer;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** The held memory of a pool, its refusals, and the content of its memory. */
class TensorPoolBoundTest {
    private static final long KIB = 1L << 10;
    private static final long MIB = 1L << 20;

    @Test
    void countsIdleMemoryAndFreesItForWhatDoesNotFitBesideIt() {
        try (TensorPool pool = new TensorPool(32 * MIB, 32 * MIB)) {
            List<TensorBuffer> buffers = new ArrayList<>();
            for (int i = 0; i < 30; i++) {
                buffers.add(pool.allocate(MIB));
            }
            buffers.forEach(TensorBuffer::close);
            assertThat(pool.bytesIdle()).isEqualTo(30 * MIB);

            try (TensorBuffer other = pool.allocate(20 * MIB)) {
                assertThat(other.segment().byteSize()).isEqualTo(20 * MIB);
                assertThat(pool.bytesHeld()).isLessThanOrEqualTo(32 * MIB);
                assertThat(pool.bytesIdle()).isPositive();
            }
        }
    }

    @Test
    void freesIdleSlabsToo() {
        try (TensorPool pool = new TensorPool(8 * MIB, 8 * MIB)) {
            List<TensorBuffer> buffers = new ArrayList<>();
            for (int i = 0; i < 7 * 64; i++) {
                buffers.add(pool.allocate(16 * KIB));
            }
            buffers.forEach(TensorBuffer::close);

            pool.allocate(8 * MIB).close();

            assertThat(pool.bytesHeld()).isLessThanOrEqualTo(8 * MIB);
        }
    }

    @Test
    void suggestsARetryOnlyWhereItMayHelp() {
        try (TensorPool pool = new TensorPool(8 * MIB, 0);
                TensorBuffer held = pool.allocate(5 * MIB)) {
            assertThat(held.segment().byteSize()).isEqualTo(5 * MIB);
            assertThatThrownBy(() -> pool.allocate(4 * MIB))
                    .isInstanceOfSatisfying(
                            InferenceException.class,
                            e -> assertThat(e.retryAfter()).isPresent());
            assertThatThrownBy(() -> pool.allocate(9 * MIB))
                    .isInstanceOfSatisfying(
                            InferenceException.class,
                            e -> assertThat(e.retryAfter()).isEmpty())
                    .hasMessageEndingWith("Use --tensor-memory-pool-byte-size to increase the limit.");
            assertThatThrownBy(() -> pool.reserve(9 * MIB)).hasMessageContaining("--tensor-memory-pool-byte-size");
        }
    }

    @Test
    void keepsAPartForSmallPiecesWhenLargeOnesFillTheRest() {
        try (TensorPool pool = new TensorPool(64 * MIB, 0);
                TensorBuffer large = pool.allocate(60 * MIB)) {
            assertThat(large.segment().byteSize()).isEqualTo(60 * MIB);
            assertThatThrownBy(() -> pool.allocate(MIB)).isInstanceOf(InferenceException.class);

            pool.allocate(KIB).close();
            pool.allocate(200 * KIB).close();
        }
    }

    @Test
    void reservesTheLargestBufferThatItNames() {
        for (long limit : new long[] {1, 1000, 300 * KIB, 8 * MIB, 64 * MIB, 1L << 40}) {
            try (TensorPool pool = new TensorPool(limit, 0)) {
                pool.reserve(pool.largestBuffer()).close();
                assertThatThrownBy(() -> pool.reserve(pool.largestBuffer() + 1)).isInstanceOf(InferenceException.class);
                assertThat(pool.limit()).isEqualTo(limit);
            }
        }
    }

    @Test
    void reservesNothingForADeclaredSizeAndLittleMoreThanArrives() {
        try (TensorPool pool = new TensorPool(64 * MIB, 0);
                GrowingBuffer buffer = pool.reserve(50 * MIB)) {
            assertThat(pool.bytesHeld()).isZero();

            MemorySegment first = buffer.grow(1000);
            first.set(ValueLayout.JAVA_BYTE, 999, (byte) 7);
            assertThat(pool.bytesHeld()).isEqualTo(4096);
            assertThat(pool.bytesInUse()).isEqualTo(4096);

            MemorySegment more = buffer.grow(10 * MIB + 1);
            assertThat(more.address())
                    .isEqualTo(first.address())
                    .isEqualTo(buffer.segment().address());
            assertThat(more.get(ValueLayout.JAVA_BYTE, 999)).isEqualTo((byte) 7);
            assertThat(pool.bytesInUse()).isBetween(10 * MIB + 1, 11 * MIB + 4096);
        }
    }

    @Test
    void refusesToGrowBeyondTheLimitAndGivesAllBack() {
        try (TensorPool pool = new TensorPool(8 * MIB, 0)) {
            GrowingBuffer one = pool.reserve(6 * MIB);
            GrowingBuffer other = pool.reserve(6 * MIB);
            one.grow(5 * MIB);
            other.grow(2 * MIB);

            assertThatThrownBy(() -> other.grow(4 * MIB))
                    .isInstanceOfSatisfying(
                            InferenceException.class,
                            e -> assertThat(e.retryAfter()).isPresent());
            assertThat(other.segment().byteSize()).isGreaterThanOrEqualTo(2 * MIB);

            one.close();
            other.grow(6 * MIB);
            other.close();
            assertThat(pool.bytesHeld()).isZero();
            assertThat(pool.bytesInUse()).isZero();
        }
    }

    @Test
    void growsInFewStepsUpToTheLimit() {
        try (TensorPool pool = new TensorPool(32 * MIB, 0);
                TensorBuffer held = pool.allocate(19 * MIB);
                GrowingBuffer growing = pool.reserve(20 * MIB)) {
            List<Long> sizes = new ArrayList<>(List.of(0L));
            assertThatThrownBy(() -> {
                        while (sizes.size() < 1_000) {
                            sizes.add(growing.grow(sizes.getLast() + 1).byteSize());
                        }
                    })
                    .isInstanceOf(InferenceException.class)
                    .hasMessageContaining("no memory");

            assertThat(sizes).hasSizeLessThan(200);
            assertThat(held.segment().byteSize() + sizes.getLast()).isEqualTo(pool.bytesHeld());
        }
    }

    @Test
    void reservesMemoryThatIsIdle() {
        try (TensorPool pool = new TensorPool(8 * MIB, 2 * MIB)) {
            TensorBuffer before = pool.allocate(MIB);
            long address = before.segment().address();
            before.close();

            try (GrowingBuffer buffer = pool.reserve(MIB)) {
                assertThat(buffer.segment().address()).isEqualTo(address);
                assertThat(buffer.segment().byteSize()).isEqualTo(MIB);
                assertThat(pool.bytesIdle()).isZero();
            }
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {10, 1000, 100 * KIB, 600 * KIB, 5 * MIB})
    void clearsRecycledMemoryForThoseWhoMayLeaveItUnfilled(long size) {
        try (TensorPool pool = new TensorPool(64 * MIB, 16 * MIB)) {
            TensorBuffer secret = pool.allocate(size);
            secret.segment().fill((byte) 42);
            long address = secret.segment().address();
            secret.close();

            try (TensorBuffer output = pool.allocateZeroed(size)) {
                assertThat(output.segment().address()).isEqualTo(address);
                assertThat(output.segment().mismatch(MemorySegment.ofArray(new byte[(int) size])))
                        .isEqualTo(-1);
            }
        }
    }

    @Test
    void clearsWhatAShorterUserLeftOfALargerPiece() {
        try (TensorPool pool = new TensorPool(64 * MIB, 16 * MIB)) {
            TensorBuffer secret = pool.allocate(630 * KIB);
            secret.segment().fill((byte) 42);
            secret.close();
            pool.allocateZeroed(580 * KIB).close();

            try (TensorBuffer output = pool.allocateZeroed(640 * KIB)) {
                assertThat(output.segment().mismatch(MemorySegment.ofArray(new byte[(int) (640 * KIB)])))
                        .isEqualTo(-1);
            }
        }
    }

    @ParameterizedTest
    @ValueSource(longs = {1000, 600 * KIB})
    void poisonsWhatIsGivenBackSoThatItsUseIsSeen(long size) {
        try (TensorPool pool = new TensorPool(64 * MIB, 16 * MIB, true)) {
            TensorBuffer buffer = pool.allocate(size);
            MemorySegment stale = buffer.segment();
            assertThat(stale.get(ValueLayout.JAVA_BYTE, size - 1)).isEqualTo(TensorPool.POISON);
            stale.fill((byte) 1);

            buffer.close();

            assertThat(stale.get(ValueLayout.JAVA_BYTE, 0)).isEqualTo(TensorPool.POISON);
            assertThat(stale.get(ValueLayout.JAVA_BYTE, size - 1)).isEqualTo(TensorPool.POISON);
            try (TensorBuffer output = pool.allocateZeroed(size)) {
                assertThat(output.segment().get(ValueLayout.JAVA_BYTE, size - 1))
                        .isZero();
            }
        }
    }

    @Test
    void keepsAnEighthIdleAtMost() {
        assertThat(TensorPool.idleLimit(64 * MIB)).isEqualTo(8 * MIB);
        assertThat(TensorPool.idleLimit(1L << 40)).isEqualTo(256 * MIB);
    }
}
