package dev.nereid.scheduler;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Fence;
import java.time.Duration;

/** A fence whose wait is code of the test, and which is done after that. Safe for use by any thread. */
public final class FakeFence implements Fence {
    /** The wait for the work of a device. */
    @FunctionalInterface
    public interface Work {
        void await() throws BackendException;
    }

    private final Work work;
    private final boolean ends;
    private volatile boolean done;

    /** Creates a fence whose work ends with the first wait. */
    public FakeFence(Work work) {
        this(work, true);
    }

    private FakeFence(Work work, boolean ends) {
        this.work = work;
        this.ends = ends;
    }

    /** Returns a fence whose work does not end in the time that anyone waits. */
    public static FakeFence ofEndlessWork() {
        return new FakeFence(() -> {}, false);
    }

    @Override
    public boolean isDone() {
        return done;
    }

    @Override
    public boolean await(Duration timeout) throws BackendException {
        done = ends;
        work.await();
        return ends;
    }
}
