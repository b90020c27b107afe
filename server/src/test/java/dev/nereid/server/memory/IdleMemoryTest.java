package dev.nereid.server.memory;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.memory.TensorBuffer;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Queue;
import org.junit.jupiter.api.Test;

/** When memory is returned, and which. */
final class IdleMemoryTest {
    private static final Duration IDLE = Duration.ofSeconds(30);

    private final Queue<Runnable> begun = new ArrayDeque<>();
    private final List<String> returned = new ArrayList<>();
    private long lastUse = Long.MAX_VALUE - 5; // the scale has no origin, and may overflow
    private boolean inUse;
    private final IdleMemory memory = new IdleMemory(
            IDLE,
            now -> inUse ? now : lastUse,
            List.of(
                    () -> returned.add("first"),
                    () -> {
                        throw new IllegalStateException("broken");
                    },
                    () -> returned.add("last")),
            begun::add);

    @Test
    void isReturnedOnceInEachTimeWithoutUse() {
        memory.check(lastUse + IDLE.toNanos() - 1);
        assertThat(begun).isEmpty();

        memory.check(lastUse + IDLE.toNanos());
        memory.check(lastUse + 2 * IDLE.toNanos());
        assertThat(begun).hasSize(1);

        lastUse += 3 * IDLE.toNanos();
        memory.check(lastUse + 1);
        assertThat(begun).hasSize(1);
        memory.check(lastUse + IDLE.toNanos());
        assertThat(begun).hasSize(2);
    }

    @Test
    void isNotReturnedDuringAUseOrSoonAfterIt() {
        inUse = true;
        long now = lastUse;
        for (int i = 0; i < 3; i++) {
            now += IDLE.toNanos();
            memory.check(now);
        }
        inUse = false;
        memory.check(now + IDLE.toNanos() - 1);
        assertThat(begun).isEmpty();

        memory.check(now + IDLE.toNanos());
        assertThat(begun).hasSize(1);
    }

    @Test
    void isNotReturnedAgainWhenTheModelThatWasUsedLastIsUnloaded() {
        memory.check(lastUse + IDLE.toNanos());
        assertThat(begun).hasSize(1);

        lastUse -= 5;
        memory.check(lastUse + 3 * IDLE.toNanos());

        assertThat(begun).hasSize(1);
    }

    @Test
    void aFailureLeavesTheOthers() {
        memory.check(lastUse + IDLE.toNanos());

        begun.remove().run();

        assertThat(returned).containsExactly("first", "last");
    }

    @Test
    void thePoolFreesWhatIsIdleAndNothingElse() {
        try (TensorPool pool = new TensorPool(1 << 30, 1 << 29);
                TensorBuffer used = pool.allocate(1000)) {
            pool.allocate(5000).close();
            pool.allocate(5 << 20).close();
            long held = pool.bytesHeld();
            assertThat(pool.bytesIdle()).isGreaterThanOrEqualTo(5 << 20);

            pool.freeIdle();

            assertThat(pool.bytesHeld()).isLessThan(held - (5 << 20) + 1);
            assertThat(used.segment().byteSize()).isGreaterThanOrEqualTo(1000);
            used.segment().fill((byte) 1);
            pool.allocate(5 << 20).close();
            assertThat(pool.bytesIdle()).as("kept again").isGreaterThanOrEqualTo(5 << 20);
        }
    }
}
