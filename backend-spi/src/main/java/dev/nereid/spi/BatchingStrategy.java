package dev.nereid.spi;

/**
 * Decides which requests of a model share a batch, within the limits of its configuration. Used where the
 * configuration enables dynamic batching. <em>Implemented by backends</em>, and created by {@link Model#batching()}.
 *
 * <p>Called on threads of instances, one call at a time for a model, never under a lock of the server.
 *
 * @since 1.0
 */
public interface BatchingStrategy extends AutoCloseable {
    /**
     * Starts to form a batch. The server may discard it and start another, for instance when a request of a higher
     * priority arrives: then the former batch is closed first.
     *
     * @return the batch, owned and later closed by the server
     * @throws BackendException if it cannot be formed; it then holds one request
     */
    FormingBatch begin();

    /** Frees the resources of the strategy. Called once, before the model is closed. Does nothing by default. */
    @Override
    default void close() {}
}
