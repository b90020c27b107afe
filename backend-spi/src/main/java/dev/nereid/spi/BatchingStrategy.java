package dev.nereid.spi;

/**
 * Decides which requests of a model share a batch, within the limits of its configuration. Used where the
 * configuration asks for dynamic batching. <em>Implemented by backends</em>, and made by {@link Model#batching()}.
 *
 * <p>Called on threads of instances, one call at a time for a model, never under a lock of the server.
 */
public interface BatchingStrategy extends AutoCloseable {
    /**
     * Begins to form a batch. What is formed may be thrown away and begun anew, for instance when a request of a higher
     * priority comes: then the former batch is closed first.
     *
     * @return the batch to be formed, owned and later closed by the server
     * @throws BackendException if it cannot be formed; it then holds one request
     */
    FormingBatch begin() throws BackendException;

    /** Frees what the strategy holds. Called once, before the model is closed. Does nothing by default. */
    @Override
    default void close() {}
}
