package dev.nereid.backend.tensorrt.runtime;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.Shape;

/** An execution context of an engine, with one optimization profile. Used by one thread at a time. */
public interface ExecutionContext extends AutoCloseable {
    /** Sets the shape of an input for the next executions; fails if the profile does not allow it. */
    void setShape(String input, Shape shape);

    /**
     * Returns the shape of a tensor for the shapes that are set; a variable dimension where it depends on values that are
     * not known before the execution.
     */
    Shape shape(String tensor);

    /**
     * Sets the memory of a tensor for the next executions: on the device, for a shape tensor on the host.
     *
     * @throws BackendException if it is not aligned
     */
    void setAddress(String tensor, long address);

    /** Appends an execution to a stream; fails if a shape or an address is missing, or the GPU failed. */
    void enqueue(long stream);

    @Override
    void close();
}
