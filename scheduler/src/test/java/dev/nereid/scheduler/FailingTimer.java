package dev.nereid.scheduler;

import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;

/** A timer that fires, and fails to schedule a timeout, when the test says so. Safe for use by any thread. */
public final class FailingTimer implements Timer {
    private final IllegalStateException failure = new IllegalStateException("for a test");
    private final AtomicInteger failing = new AtomicInteger();
    private final AtomicInteger scheduled = new AtomicInteger();

    private final List<Runnable> actions = new CopyOnWriteArrayList<>();

    /** Fires all timeouts, on the calling thread. */
    public void fire() {
        actions.forEach(Runnable::run);
    }

    /** Makes the next timeout fail when it is scheduled. */
    public void failNext() {
        failing.set(1);
    }

    /** Returns whether {@link #failNext} had its effect. */
    public boolean hasFailed() {
        return failing.get() <= 0;
    }

    /** Returns how often a timeout was scheduled. */
    public int scheduled() {
        return scheduled.get();
    }

    @Override
    public Timeout newTimeout(Runnable action) {
        actions.add(action);
        return new Timeout() {
            @Override
            public void scheduleAtLatest(long deadlineNanos) {
                if (failing.getAndDecrement() == 1) {
                    throw failure;
                }
                scheduled.incrementAndGet();
            }

            @Override
            public void close() {}
        };
    }
}
