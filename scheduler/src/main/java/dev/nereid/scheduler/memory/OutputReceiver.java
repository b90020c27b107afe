package dev.nereid.scheduler.memory;

import dev.nereid.spi.Tensor;

/** An execution, which takes over the outputs of its backend. Safe for use by any thread until its end. */
public interface OutputReceiver {
    /**
     * Returns an output of the backend as the server reads it and passes it on. Work of a device that writes it is awaited
     * at the end of the execution, before a request is answered that does not take its output under way; its memory is
     * retained until then.
     *
     * @param memory the memory of the output
     */
    Tensor received(Tensor output, ReferenceCountedMemory memory);

    /** Returns whether responses are delivered before their outputs are written. Known at the end of the execution. */
    boolean passesOn();
}
