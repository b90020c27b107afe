package dev.nereid.grpc.wire;

import dev.nereid.api.InferenceException;
import dev.nereid.api.frontend.ForwardedHeaders;
import dev.nereid.spi.ErrorCode;
import io.grpc.Metadata;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * Deadline and forwarded headers of one gRPC call. Immutable.
 *
 * @param deadlineNanos when the client loses interest, on the scale of {@link System#nanoTime()}
 * @param headers the headers that become parameters of the requests
 * @param encoding how responses are compressed; empty for not at all
 */
public record CallContext(OptionalLong deadlineNanos, ForwardedHeaders headers, Optional<String> encoding) {
    /** Headers of the transport, which the reference server does not forward. */
    private static final Set<String> TRANSPORT_HEADERS = Set.of("content-type", "te");

    private static final String TRANSPORT_PREFIX = "grpc-";

    /** Selects the headers of a gRPC call, by a pattern in their names, that become parameters of its requests. */
    public static ForwardedHeaders forwardedHeaders(Metadata metadata, Pattern names) {
        ForwardedHeaders.Builder forwarded = new ForwardedHeaders.Builder(names);
        for (String name : metadata.keys()) {
            if (!isOfTransport(name) && forwarded.matches(name)) {
                String value = metadata.get(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER));
                if (value != null) {
                    forwarded.add(name, value);
                }
            }
        }
        return forwarded.build();
    }

    private static boolean isOfTransport(String name) {
        return TRANSPORT_HEADERS.contains(name)
                || name.startsWith(TRANSPORT_PREFIX)
                || name.endsWith(Metadata.BINARY_HEADER_SUFFIX);
    }

    /**
     * Says whether an error follows from the deadline of the client. Such a call has no response: the transport ends it
     * as well, a moment later.
     *
     * @param nowNanos the time, on the scale of {@link System#nanoTime()}
     */
    public boolean isExpired(InferenceException error, long nowNanos) {
        return error.code() == ErrorCode.CANCELLED
                && deadlineNanos.isPresent()
                && nowNanos - deadlineNanos.getAsLong() >= 0;
    }
}
