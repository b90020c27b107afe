package dev.nereid.scheduler.queue;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.scheduler.Threads;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests which threads are woken, and when. */
@Timeout(60)
final class QueueLockTest {
    private static final long HOUR = Duration.ofHours(1).toNanos();

    private final QueueLock lock = new QueueLock();
    private boolean over;

    @Test
    void wakesAllThreadsWokenUnderIt() {
        List<Thread> sleepers = new ArrayList<>();
        for (int i = 0; i < 3; i++) {
            sleepers.add(Thread.ofPlatform().start(this::sleepUntilOver));
        }
        for (Thread sleeper : sleepers) {
            awaitAsleep(sleeper);
        }

        lock.lock();
        try {
            over = true;
            sleepers.forEach(lock::wake);
        } finally {
            lock.unlock();
        }

        for (Thread sleeper : sleepers) {
            assertThat(join(sleeper)).isTrue();
        }
    }

    @Test
    void reportsAnInterruptionAndClearsIt() {
        lock.lock();
        Thread.currentThread().interrupt();
        assertThat(lock.sleep(this)).isTrue();
        Thread.currentThread().interrupt();
        assertThat(lock.sleep(this, HOUR)).isTrue();

        assertThat(Thread.currentThread().isInterrupted()).isFalse();
        assertThat(lock.isHeldByCurrentThread()).isTrue();
    }

    @Test
    void sleepsNoLongerThanItsTime() {
        lock.lock();

        assertThat(lock.sleep(this, 1)).isFalse();

        assertThat(lock.isHeldByCurrentThread()).isTrue();
    }

    @Test
    void offersNoConditions() {
        assertThatThrownBy(lock::newCondition).isInstanceOf(UnsupportedOperationException.class);
    }

    private void sleepUntilOver() {
        lock.lock();
        try {
            while (!over) {
                lock.sleep(this);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Waits until a thread sleeps, with the lock free. */
    private void awaitAsleep(Thread thread) {
        Threads.await("asleep", () -> thread.getState() == Thread.State.WAITING && !lock.hasQueuedThread(thread));
    }

    private static boolean join(Thread thread) {
        try {
            return thread.join(Duration.ofSeconds(30));
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }
}
