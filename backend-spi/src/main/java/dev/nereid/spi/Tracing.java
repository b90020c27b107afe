package dev.nereid.spi;

/**
 * Adds spans to the traces of requests. Safe for use by any thread. <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
@Incubating
public interface Tracing {
    /**
     * Starts a span. Costs next to nothing for a request that is not traced.
     *
     * @param request the request that the work belongs to
     * @param name what is done, for instance {@code tokenize}
     * @return the span, ended by its close
     */
    Span span(InferenceRequest request, String name);

    /** A part of the work on a request. Confined to one thread at a time. */
    @Incubating
    interface Span extends AutoCloseable {
        /**
         * Adds an attribute.
         *
         * @param name the attribute's name
         * @param value its value
         */
        void attribute(String name, String value);

        /** Ends the span. Later calls do nothing. */
        @Override
        void close();
    }
}
