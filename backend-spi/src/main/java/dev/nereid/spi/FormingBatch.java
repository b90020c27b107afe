package dev.nereid.spi;

/**
 * A batch that a {@link BatchingStrategy} is forming. Confined: one call at a time. <em>Implemented by backends.</em>
 */
public interface FormingBatch extends AutoCloseable {
    /**
     * Says whether a request goes into the batch. Asked for each request in the order in which they would be executed,
     * until the answer is no; the batch then goes as it is. The first request goes in whatever the answer.
     *
     * @param request the request, valid until this batch is closed
     * @return whether it goes in
     * @throws BackendException counts as no, and is logged
     */
    boolean include(QueuedRequest request) throws BackendException;

    /** Ends the forming, before the batch is executed or when it is thrown away. Does nothing by default. */
    @Override
    default void close() {}
}
