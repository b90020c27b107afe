package dev.nereid.scheduler.memory;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Fence;
import dev.nereid.spi.Tensor;
import java.time.Duration;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import java.util.function.LongConsumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Holds the fences and the memory of the pending outputs of one execution. Safe for use by any thread until
 * {@link #await}.
 *
 * <p>It has a reference to the memory of each output. So the memory is not freed while the output is pending, whatever
 * happens to its response.
 */
public final class OutputFences {
    private static final Logger LOG = LoggerFactory.getLogger(OutputFences.class);

    /** The pause between two attempts to wait. */
    private static final long PAUSE_NANOS = 1_000_000;

    private final Queue<Pending> pending = new ConcurrentLinkedQueue<>();

    /** An output with a fence that has not been awaited. */
    private record Pending(ServerFence fence, Tensor output, ReferenceCountedMemory memory) {}

    /** Adds a pending output with the backend's fence, and retains its memory; returns it with the server's fence. */
    public Tensor add(Tensor output, ReferenceCountedMemory memory) {
        ServerFence passed = new ServerFence(output.fence().orElseThrow());
        Tensor fenced = output.withFence(passed);
        memory.retain();
        pending.add(new Pending(passed, fenced, memory));
        return fenced;
    }

    /**
     * Waits for all fences, however long that takes, and releases the memory; returns whether all succeeded. All memory
     * that the devices use must stay as long. Called once.
     */
    public boolean await() {
        boolean succeeded = true;
        for (Pending one = pending.poll(); one != null; one = pending.poll()) {
            succeeded &= await(one);
        }
        return succeeded;
    }

    private static boolean await(Pending output) {
        boolean logged = false;
        while (true) {
            try {
                if (DeviceCopies.await(output.fence())) {
                    output.memory().release();
                    return true;
                }
                if (!logged) {
                    LOG.warn(
                            "work of {} goes on for more than a minute",
                            output.output().place());
                    logged = true;
                }
            } catch (BackendException e) { // those who read the output get it too
                LOG.debug("work of {} failed", output.output().place(), e);
                DeviceCopies.releaseUnlessPending(output.output(), output.memory());
                return false;
            } catch (RuntimeException e) { // of a fence that is broken
                if (!logged) {
                    LOG.error("wait for work of {} failed", output.output().place(), e);
                    logged = true;
                }
                LockSupport.parkNanos(PAUSE_NANOS);
            }
        }
    }

    /**
     * The server's fence of a pending output, in place of the backend's. Safe for use by any thread.
     *
     * <p>Forwards to the fence of the backend until a wait has seen the end of the device's work. The wait of the
     * execution sees it at the latest. From then on the result is known, and the backend is not called any more: it may
     * be unloaded while a tensor still has this fence.
     */
    private static final class ServerFence implements Fence {
        /** The fence of the backend; {@code null} from the end of the device's work on. */
        private volatile @Nullable Fence fence;

        /** The failure of the work; written before {@link #fence}, by each wait that sees the end. */
        private volatile @Nullable BackendException failure;

        ServerFence(Fence fence) {
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
}
