package dev.nereid.server.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.GrowingBuffer;
import dev.nereid.api.memory.TensorBuffer;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import net.jqwik.api.ForAll;
import net.jqwik.api.Property;
import net.jqwik.api.constraints.IntRange;
import net.jqwik.api.constraints.LongRange;

/**
 * Checks limit and counts of a pool. In any order of allocation and release, it holds no more than its limit, and
 * counts correctly.
 */
class TensorPoolProperties {
    private static final int KIB = 1 << 10;

    @Property(tries = 150)
    void neverHoldsMoreThanTheLimit(
            @ForAll @LongRange(min = 1, max = 8 << 20) long limit,
            @ForAll @IntRange(max = 4 << 20) int idleLimit,
            @ForAll @IntRange(min = 1, max = 200) int steps,
            @ForAll boolean poisoned,
            @ForAll Random random) {
        TensorPool pool = new TensorPool(limit, idleLimit, poisoned);
        List<TensorBuffer> open = new ArrayList<>();
        for (int i = 0; i < steps; i++) {
            try {
                step(pool, open, random);
            } catch (InferenceException e) {
                assertThat(e).hasMessageStartingWith("no memory for a tensor of ");
            }
            assertThat(pool.bytesHeld()).isLessThanOrEqualTo(limit);
            assertThat(pool.bytesInUse() + pool.bytesIdle()).isLessThanOrEqualTo(pool.bytesHeld());
            assertThat(pool.bytesInUse())
                    .isEqualTo(open.stream()
                            .mapToLong(buffer -> buffer.segment().byteSize())
                            .sum());
        }
        open.forEach(TensorBuffer::close);
        assertThat(pool.bytesInUse()).isZero();
        assertThat(pool.bytesIdle()).isEqualTo(pool.bytesHeld());
        pool.close();
        assertThat(pool.bytesHeld()).isZero();
    }

    private static void step(TensorPool pool, List<TensorBuffer> open, Random random) {
        long size = random.nextInt(1 << random.nextInt(1, 22));
        switch (random.nextInt(6)) {
            case 0 -> open.add(pool.allocate(size));
            case 1 -> {
                TensorBuffer zeroed = pool.allocateZeroed(size);
                open.add(zeroed);
                for (long at = 0; at < size; at += 97) {
                    assertThat(zeroed.segment().get(ValueLayout.JAVA_BYTE, at)).isZero();
                }
                zeroed.segment().fill((byte) 1);
            }
            case 2 -> open.add(pool.reserve(size + 128 * KIB));
            case 3 -> {
                for (TensorBuffer buffer : open) {
                    if (buffer instanceof GrowingBuffer growing
                            && buffer.segment().byteSize() < size) {
                        try {
                            growing.grow(size).asSlice(0, size).fill((byte) 2);
                        } catch (IllegalStateException e) {
                            assertThat(e).hasMessageContaining("capacity");
                        }
                        return;
                    }
                }
            }
            default -> {
                if (!open.isEmpty()) {
                    open.remove(random.nextInt(open.size())).close();
                }
            }
        }
    }
}
