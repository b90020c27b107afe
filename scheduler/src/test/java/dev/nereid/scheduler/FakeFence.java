package dev.nereid.scheduler;

import dev.nereid.spi.Fence;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;

/** A fence whose wait is code of the test, and which is done after that. Safe for use by any thread. */
public final class FakeFence implements Fence {
    /** The wait for the work of a device. */
    @FunctionalInterface
    public interface Work {
        void await();
    }

    private final Work work;
    private final AtomicInteger waits;
    private volatile boolean done;

    /** Creates a fence whose work ends with the first wait. */
    public FakeFence(Work work) {
        this(work, 1);
    }

    private FakeFence(Work work, int waits) {
        this.work = work;
        this.waits = new AtomicInteger(waits);
    }

    /** Returns a fence whose work ends with the last of several waits. */
    public static FakeFence ofLongWork(int waits, Work work) {
        return new FakeFence(work, waits);
    }

    /** Returns a fence whose work does not end in the time that anyone waits. */
    public static FakeFence ofEndlessWork() {
        return new FakeFence(() -> {}, Integer.MAX_VALUE);
    }

    @Override
    public boolean isDone() {
        return done;
    }

    @Override
    public boolean await(Duration timeout) {
        done = waits.decrementAndGet() <= 0;
        work.await();
        return done;
    }
}
