package dev.nereid.spi;

import java.util.Optional;

/** Traces no request. Immutable. */
@Incubating
final class NoTracing implements Tracing {
    static final NoTracing INSTANCE = new NoTracing();

    private static final Span NO_SPAN = new NoSpan();

    private NoTracing() {}

    @Override
    public Span span(InferenceRequest request, String name) {
        return NO_SPAN;
    }

    @Override
    public Optional<String> traceparent(InferenceRequest request) {
        return Optional.empty();
    }

    /** A span of a request that is not traced. */
    @Incubating
    private static final class NoSpan implements Span {
        @Override
        public Span span(String name) {
            return this;
        }

        @Override
        public void attribute(String name, String value) {}

        @Override
        public void event(String name) {}

        @Override
        public void close() {}
    }
}
