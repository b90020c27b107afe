package dev.nereid.scheduler.memory;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Tensor;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.locks.LockSupport;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The work of devices that writes outputs of one execution. Safe for use by any thread until {@link #await}.
 *
 * <p>Holds a reference to the memory of each output, so that whatever becomes of its response, the memory is not freed
 * while the work is under way.
 */
public final class OutputFences {
    private static final Logger LOG = LoggerFactory.getLogger(OutputFences.class);

    /** Between two attempts to wait. */
    private static final long PAUSE_NANOS = 1_000_000;

    private final Queue<Pending> pending = new ConcurrentLinkedQueue<>();

    /** An output whose work has not been awaited. */
    private record Pending(OutputFence fence, Tensor output, ReferenceCountedMemory memory) {}

    /**
     * Adds the work that writes an output.
     *
     * @param output the output, with the fence of the backend
     * @param memory the memory of the output, retained here
     * @return the output with the fence that the server passes on
     */
    public Tensor add(Tensor output, ReferenceCountedMemory memory) {
        OutputFence passed = new OutputFence(output.fence().orElseThrow());
        Tensor fenced = output.withFence(passed);
        memory.retain();
        pending.add(new Pending(passed, fenced, memory));
        return fenced;
    }

    /**
     * Waits until all work has ended, however long that takes, and releases the memory: what the work uses must stay as
     * long. Called once.
     *
     * @return whether all of it succeeded
     */
    public boolean await() {
        boolean succeeded = true;
        for (Pending one = pending.poll(); one != null; one = pending.poll()) {
            succeeded &= await(one);
        }
        return succeeded;
    }

    private static boolean await(Pending one) {
        boolean logged = false;
        while (true) {
            try {
                if (DeviceCopies.await(one.fence())) {
                    one.memory().release();
                    return true;
                }
                if (!logged) {
                    LOG.warn(
                            "work of {} goes on for more than a minute",
                            one.output().place());
                    logged = true;
                }
            } catch (BackendException e) { // those who read the output get it too
                LOG.debug("work of {} failed", one.output().place(), e);
                DeviceCopies.releaseUnlessUnderWay(one.output(), one.memory());
                return false;
            } catch (RuntimeException | Error e) { // such as no heap for an exception
                if (!logged) {
                    LOG.error("wait for work of {} failed", one.output().place(), e);
                    logged = true;
                }
                LockSupport.parkNanos(PAUSE_NANOS);
            }
        }
    }
}
