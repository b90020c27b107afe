package dev.nereid.scheduler;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Fence;
import java.time.Duration;

/** A fence whose wait is code of the test. */
public record FakeFence(Work work) implements Fence {
    /** The wait for the work of a device. */
    @FunctionalInterface
    public interface Work {
        void await() throws BackendException;
    }

    @Override
    public boolean isDone() {
        return false;
    }

    @Override
    public boolean await(Duration timeout) throws BackendException {
        work.await();
        return true;
    }

    @Override
    public long event() {
        return 0;
    }
}
