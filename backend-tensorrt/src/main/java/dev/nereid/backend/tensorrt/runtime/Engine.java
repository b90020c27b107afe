package dev.nereid.backend.tensorrt.runtime;

import dev.nereid.spi.BackendException;
import java.util.List;

/** An engine on one GPU. Safe for use by several threads. Closed after the last of its contexts. */
public interface Engine extends AutoCloseable {
    /** Returns its inputs, then its outputs. */
    List<EngineTensor> tensors();

    /** Returns the number of its optimization profiles, at least 1. */
    int profiles();

    /** Returns the device memory that a context needs for its activations, in bytes. */
    long contextBytes();

    /**
     * Creates an execution context.
     *
     * @param profile the number of its optimization profile
     * @param stream the stream on which the profile is chosen, and which the caller waits for before the first execution
     * @return the context, owned by the caller
     * @throws BackendException if there is no memory
     */
    ExecutionContext newContext(int profile, long stream);

    @Override
    void close();
}
