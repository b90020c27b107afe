package dev.nereid.backend.onnx;

import static org.assertj.core.api.Assertions.assertThat;

import org.junit.jupiter.api.Test;

/** The bound on threads of sessions. */
final class PoolThreadsTest {
    @Test
    void allowsSixtyFourPoolsWithAllProcessors() {
        PoolThreads threads = new PoolThreads(64);
        for (int i = 0; i < 64; i++) {
            assertThat(threads.acquire(63)).isTrue();
        }

        assertThat(threads.acquire(1)).isFalse();
        assertThat(threads.acquire(0)).as("a pool without threads").isTrue();

        threads.release(63);
        assertThat(threads.acquire(64)).isFalse();
        assertThat(threads.acquire(63)).isTrue();
    }

    @Test
    void allowsSomeThreadsOnASmallMachine() {
        PoolThreads threads = new PoolThreads(1);

        assertThat(threads.acquire(64)).isTrue();
        assertThat(threads.acquire(1)).isFalse();
    }
}
