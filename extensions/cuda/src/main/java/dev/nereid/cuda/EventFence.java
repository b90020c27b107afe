package dev.nereid.cuda;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * A fence at one place of a stream. Safe for use by any thread.
 *
 * <p>Its uses are counted, since a query of an event that is destroyed ends the process: the owner is one, each running
 * query another. The last one returns the event; a query after that asks nothing, and the work counts as done. The
 * result of the work is written once, by whichever query sees it first, and all see the same.
 */
public final class EventFence implements Fence {
    private final EventPool pool;
    private final GpuContext gpu;
    private final PollingWait wait;
    private final long event;
    private final AtomicBoolean released = new AtomicBoolean();
    private final AtomicInteger uses = new AtomicInteger(1);

    private volatile boolean done;
    private volatile @Nullable GpuException failure;

    EventFence(EventPool pool, GpuContext gpu, PollingWait wait, long event) {
        this.pool = pool;
        this.gpu = gpu;
        this.wait = wait;
        this.event = event;
    }

    @Override
    public boolean isDone() {
        if (done || !use()) {
            return true;
        }
        try {
            if (gpu.isDone(event)) {
                done = true;
            }
        } catch (GpuException e) {
            failure = e; // before done, so that whoever sees the end sees the failure
            done = true;
        } finally {
            endUse();
        }
        return done;
    }

    @Override
    public boolean await(Duration timeout) {
        if (!wait.until(this::isDone, nanos(timeout))) {
            return false;
        }
        GpuException failed = failure;
        if (failed != null) {
            throw new BackendException(ErrorCode.UNAVAILABLE, String.valueOf(failed.getMessage()), failed);
        }
        return true;
    }

    /** Passes the event on; it is not returned to its pool while the action runs. */
    @Override
    public boolean withEvent(LongConsumer action) {
        if (done || !use()) {
            return false;
        }
        try {
            action.accept(event);
            return true;
        } finally {
            endUse();
        }
    }

    /** Ends the owner's use, after all others; throws {@link IllegalStateException} if it was released before. */
    public void release() {
        if (!released.compareAndSet(false, true)) {
            throw new IllegalStateException("fence: released twice (expected: once)");
        }
        endUse();
    }

    private boolean use() {
        int now = uses.get();
        while (now > 0) {
            if (uses.compareAndSet(now, now + 1)) {
                return true;
            }
            now = uses.get();
        }
        return false;
    }

    private void endUse() {
        if (uses.decrementAndGet() == 0) {
            pool.giveBack(event);
        }
    }

    private static long nanos(Duration timeout) {
        try {
            return timeout.toNanos();
        } catch (ArithmeticException e) {
            return Long.MAX_VALUE; // 292 years
        }
    }
}
