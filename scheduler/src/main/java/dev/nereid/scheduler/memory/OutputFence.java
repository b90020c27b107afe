package dev.nereid.scheduler.memory;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Fence;
import java.time.Duration;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;

/**
 * The server's fence of a pending output, in place of the backend's. Safe for use by any thread.
 *
 * <p>Forwards to the fence of the backend until a wait has seen the end of the device's work. The wait of the execution
 * sees it at the latest. From then on the result is known, and the backend is not called any more: it may be unloaded
 * while a tensor still has this fence.
 */
final class OutputFence implements Fence {
    /** The fence of the backend; {@code null} from the end of the device's work on. */
    private volatile @Nullable Fence fence;

    /** The failure of the work; written before {@link #fence}, by each wait that sees the end. */
    private volatile @Nullable BackendException failure;

    OutputFence(Fence fence) {
        this.fence = fence;
    }

    @Override
    public boolean isDone() {
        Fence running = fence;
        return running == null || running.isDone();
    }

    @Override
    public boolean await(Duration timeout) {
        Fence running = fence;
        if (running == null) {
            return endedBefore();
        }
        try {
            boolean ended = running.await(timeout);
            if (ended) {
                fence = null;
            }
            return ended;
        } catch (BackendException e) {
            if (running.isDone()) { // a fence that is broken may fail while the work goes on
                failure = e;
                fence = null;
            }
            throw e;
        }
    }

    private boolean endedBefore() {
        BackendException failed = failure;
        if (failed != null) {
            throw new BackendException(failed.code(), String.valueOf(failed.getMessage()), failed);
        }
        return true;
    }

    @Override
    public boolean withEvent(LongConsumer action) {
        Fence running = fence;
        return running != null && running.withEvent(action);
    }
}
