package dev.nereid.server.memory;

import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
final class MemoryThreadsTest {
    @Test
    void refusesTasksWhenTooManyWait() throws Exception {
        MemoryThreads threads = new MemoryThreads();
        CountDownLatch gate = new CountDownLatch(1);
        CountDownLatch ended = new CountDownLatch(2 + MemoryThreads.MAX_WAITING);
        Runnable task = () -> {
            try {
                gate.await();
            } catch (InterruptedException _) {
                Thread.currentThread().interrupt();
            }
            ended.countDown();
        };
        for (int i = 0; i < 2 + MemoryThreads.MAX_WAITING; i++) {
            threads.execute(task);
        }

        assertThatThrownBy(() -> threads.execute(task)).isInstanceOf(RejectedExecutionException.class);

        gate.countDown();
        assertThatEnds(ended);
        threads.end();
        assertThatThrownBy(() -> threads.execute(task)).isInstanceOf(RejectedExecutionException.class);
    }

    private static void assertThatEnds(CountDownLatch ended) throws InterruptedException {
        if (!ended.await(30, TimeUnit.SECONDS)) {
            throw new AssertionError(ended.getCount() + " tasks did not run");
        }
    }
}
