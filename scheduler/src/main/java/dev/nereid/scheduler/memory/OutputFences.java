package dev.nereid.scheduler.memory;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The work of devices that writes outputs of one execution. Confined to the execution.
 *
 * <p>Holds a reference to the memory of each output, so that whatever becomes of its response, the memory is not freed
 * while the work is under way.
 */
public final class OutputFences {
    private static final Logger LOG = LoggerFactory.getLogger(OutputFences.class);

    private final List<Pending> pending = new ArrayList<>(2);

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
        pending.add(new Pending(passed, fenced, memory));
        memory.retain();
        return fenced;
    }

    /**
     * Waits until all work has ended, and releases the memory. Called once, when the responses are delivered.
     *
     * @return whether all of it succeeded
     */
    public boolean await() {
        boolean succeeded = true;
        for (Pending one : pending) {
            succeeded &= await(one);
        }
        pending.clear();
        return succeeded;
    }

    private static boolean await(Pending one) {
        boolean succeeded = false;
        try {
            succeeded = DeviceCopies.await(one.fence());
        } catch (BackendException e) { // also for those who read the output
            LOG.debug("work of {} failed", one.output().place(), e);
        } catch (RuntimeException | Error e) {
            LOG.error("wait for work of {} failed", one.output().place(), e);
        }
        if (succeeded || one.fence().isDone()) {
            one.memory().release();
        } else {
            LOG.error(
                    "{} bytes in {} stay in use: work of the device has not ended",
                    one.output().byteSize(),
                    one.output().place());
        }
        return succeeded;
    }
}
