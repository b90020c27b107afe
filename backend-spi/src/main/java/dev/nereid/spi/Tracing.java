package dev.nereid.spi;

import java.util.Optional;

/**
 * Adds spans to the traces of requests. Safe for use by any thread; no method blocks. <em>Implemented by the
 * server.</em>
 *
 * @since 1.0
 */
@Incubating
public interface Tracing {
    /**
     * Starts a span. Costs next to nothing for a request that is not traced.
     *
     * @param request the request that the work belongs to
     * @param name the name of the work, for instance {@code tokenize}
     * @return the span, ended by its close
     */
    Span span(InferenceRequest request, String name);

    /**
     * Returns the trace of a request in the form that is sent to other services.
     *
     * @param request the request
     * @return the value of the HTTP header {@code traceparent}; empty for a request that is not traced
     */
    Optional<String> traceparent(InferenceRequest request);

    /**
     * Returns traces of servers that trace no request.
     *
     * @return traces with spans that do nothing
     */
    static Tracing none() {
        return NoTracing.INSTANCE;
    }

    /** A part of the work on a request. Confined to one thread at a time. */
    @Incubating
    interface Span extends AutoCloseable {
        /**
         * Starts a span within this one.
         *
         * @param name the name of the work
         * @return the span, ended by its close before this one is
         */
        Span span(String name);

        /**
         * Adds an attribute; one of the same name is replaced.
         *
         * @param name the attribute's name
         * @param value its value
         */
        void attribute(String name, String value);

        /**
         * Records that something happened now.
         *
         * @param name what happened, for instance {@code first token}
         */
        void event(String name);

        /** Ends the span. Later calls do nothing. */
        @Override
        void close();
    }
}
