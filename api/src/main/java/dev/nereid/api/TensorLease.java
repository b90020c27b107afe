package dev.nereid.api;

import dev.nereid.spi.Tensor;

/**
 * Keeps one output of a response alive after the response was closed. Owned by its holder; may be closed on any thread.
 *
 * <p>An open lease keeps the request in flight and the instance that made the output open, so that a model is drained
 * only after its leases are closed.
 */
public interface TensorLease extends AutoCloseable {
    /**
     * Returns the output.
     *
     * @return a tensor that may be read until the lease is closed
     */
    Tensor tensor();

    /** Releases the output. Later calls do nothing. */
    @Override
    void close();
}
