package dev.nereid.backend.python;

import static org.assertj.core.api.Assertions.assertThat;

import java.time.Duration;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.RejectedExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

@Timeout(60)
class DelayedTaskTest {
    @Test
    void runsLaterUnlessItIsCancelled() throws InterruptedException {
        CountDownLatch ran = new CountDownLatch(1);
        AtomicInteger cancelled = new AtomicInteger();
        DelayedTask task = DelayedTask.start(Duration.ofMillis(20), Runnable::run, cancelled::incrementAndGet);
        task.cancel();
        DelayedTask.start(Duration.ofMillis(40), Runnable::run, ran::countDown);

        assertThat(ran.await(30, TimeUnit.SECONDS)).isTrue();
        assertThat(cancelled).hasValue(0);
    }

    /** A restart must not be lost since too many tasks wait at this moment. */
    @Test
    void triesAgainWhileItIsRefused() throws InterruptedException {
        CountDownLatch ran = new CountDownLatch(1);
        AtomicInteger attempts = new AtomicInteger();
        DelayedTask.start(
                Duration.ZERO,
                task -> {
                    if (attempts.incrementAndGet() < 2) {
                        throw new RejectedExecutionException("full");
                    }
                    task.run();
                },
                ran::countDown);

        assertThat(ran.await(30, TimeUnit.SECONDS)).isTrue();
    }
}
