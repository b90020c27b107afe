package dev.nereid.spi;

/**
 * A batch that a {@link BatchingStrategy} is forming. Confined: one call at a time. <em>Implemented by backends.</em>
 *
 * @since 1.0
 */
public interface FormingBatch extends AutoCloseable {
    /**
     * Says whether a request joins the batch. Called for each request in the order in which they would be executed,
     * until it returns {@code false}; the batch is then executed as it is. The first request joins in any case.
     *
     * @param request the request, valid until this batch is closed
     * @return whether it joins
     * @throws BackendException counts as {@code false}, and is logged
     */
    boolean include(RequestView request);

    /** Ends the forming, before the batch is executed or when it is discarded. Does nothing by default. */
    @Override
    default void close() {}
}
