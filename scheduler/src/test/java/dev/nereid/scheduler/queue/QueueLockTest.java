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
    void runsActionsWithoutTheLockBeforeASleep() {
        List<String> events = new ArrayList<>();
        lock.lock();
        try {
            lock.later(() -> events.add("locked: " + lock.isHeldByCurrentThread()));

            assertThat(lock.sleep(this, HOUR))
                    .as("the caller checks its condition again")
                    .isFalse();

            assertThat(events).containsExactly("locked: false");
            assertThat(lock.isHeldByCurrentThread()).isTrue();
        } finally {
            lock.unlock();
        }
        assertThat(events).as("each runs once").hasSize(1);
    }

    @Test
    void anActionThatFailsLeavesThoseBehindIt() {
        List<String> events = new ArrayList<>();
        lock.lock();
        try {
            lock.later(() -> {
                throw new IllegalStateException("for a test");
            });
            lock.later(() -> events.add("next"));
        } finally {
            lock.unlock();
        }
        assertThat(events).containsExactly("next");
    }

    @Test
    void anErrorOfAnActionIsThrownAfterTheOthers() {
        List<String> events = new ArrayList<>();
        StackOverflowError overflow = new StackOverflowError("for a test");
        lock.lock();
        lock.later(() -> {
            throw overflow;
        });
        lock.later(() -> events.add("next"));

        assertThatThrownBy(lock::unlock).isSameAs(overflow);

        assertThat(events).containsExactly("next");
        assertThat(lock.isHeldByCurrentThread()).isFalse();
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
