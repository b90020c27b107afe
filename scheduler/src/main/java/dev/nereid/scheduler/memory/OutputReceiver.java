package dev.nereid.scheduler.memory;

import dev.nereid.spi.Tensor;

/**
 * An execution, which takes over the outputs of its backend. Safe for use by any thread until its end. An interface,
 * since a batch depends on the objects that pass outputs to it.
 */
public interface OutputReceiver {
    /**
     * Returns an output of the backend as the server reads and sends it. The fence of a pending output is awaited at
     * the end of the execution; before that, only requests that take pending outputs are answered. Its memory is
     * retained until then.
     */
    Tensor received(Tensor output, ReferenceCountedMemory memory);

    /** Returns whether responses are delivered with pending outputs. Known at the end of the execution. */
    boolean deliversPending();
}
