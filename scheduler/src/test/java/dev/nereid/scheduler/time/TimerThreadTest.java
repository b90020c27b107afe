package dev.nereid.scheduler.time;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.FatalErrorHandler;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicReference;
import java.util.concurrent.locks.LockSupport;
import org.junit.jupiter.api.Test;

@org.junit.jupiter.api.Timeout(60)
final class TimerThreadTest {
    @Test
    void runsOnItsOwnThreadNotBeforeItsTime() throws InterruptedException {
        AtomicReference<String> thread = new AtomicReference<>("");
        AtomicReference<Long> at = new AtomicReference<>(0L);
        CountDownLatch rung = new CountDownLatch(1);
        try (TimerThread timer = new TimerThread(System::nanoTime)) {
            Timeout timeout = timer.newTimeout(() -> {
                at.set(System.nanoTime());
                thread.set(Thread.currentThread().getName());
                rung.countDown();
            });
            long deadline = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(20);
            timeout.scheduleAtLatest(deadline + TimeUnit.HOURS.toNanos(1));
            timeout.scheduleAtLatest(deadline); // wakes the thread, which sleeps for an hour

            rung.await();

            assertThat(at.get() - deadline).isNotNegative();
            assertThat(thread).hasValue("timer");
        }
    }

    @Test
    void endsWhenClosed() throws InterruptedException {
        AtomicReference<Thread> thread = new AtomicReference<>();
        CountDownLatch rung = new CountDownLatch(1);
        TimerThread timer = new TimerThread(System::nanoTime);
        timer.newTimeout(() -> {
                    thread.set(Thread.currentThread());
                    rung.countDown();
                })
                .scheduleAtLatest(System.nanoTime());
        timer.newTimeout(() -> {}).scheduleAtLatest(System.nanoTime() + TimeUnit.HOURS.toNanos(1));
        rung.await();

        timer.close();
        timer.close();

        assertThat(thread.get().isAlive()).isFalse();
    }

    /** A thread that waits for a lock uses permits, too. */
    @Test
    void endsThoughAnotherWaitUsesThePermitOfTheClose() throws InterruptedException {
        CountDownLatch waiting = new CountDownLatch(1);
        TimerThread timer = new TimerThread(() -> {
            if (waiting.getCount() > 0) {
                waiting.countDown();
                LockSupport.park();
            }
            return 0;
        });
        waiting.await();

        timer.close();
    }

    @Test
    void reportsTheEndOfItsThreadUnlessItIsClosed() throws InterruptedException {
        EndedThreads ended = new EndedThreads();
        TimerThread closed = new TimerThread(System::nanoTime, ended);
        closed.close();
        assertThat(ended.names).isEmpty();

        TimerThread broken = new TimerThread(
                () -> {
                    throw new IllegalStateException("of a test");
                },
                ended);
        ended.first.await();

        assertThat(ended.names).containsExactly("timer");
        broken.close();
    }

    private static final class EndedThreads implements FatalErrorHandler {
        private final List<String> names = new CopyOnWriteArrayList<>();
        private final CountDownLatch first = new CountDownLatch(1);

        @Override
        public void onFatalError(OutOfMemoryError error) {}

        @Override
        public void onThreadEnded(String thread) {
            names.add(thread);
            first.countDown();
        }
    }
}
