package dev.nereid.grpc.wire;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ParameterValue;
import io.grpc.Metadata;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/** The headers of a gRPC call that become parameters for the backend. Immutable. */
public final class ForwardedHeaders {
    /** No headers. */
    public static final ForwardedHeaders NONE = new ForwardedHeaders(Map.of(), Optional.empty());

    private static final String RESERVED_PREFIX = "triton_";
    private static final Set<String> RESERVED = Set.of(
            "sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "headers", "binary_data_output");

    /** Headers of the transport, which other implementations do not show. */
    private static final Set<String> TRANSPORT = Set.of("content-type", "te");

    private static final String TRANSPORT_PREFIX = "grpc-";

    private final Map<String, ParameterValue> headers;
    private final Optional<String> reserved;

    private ForwardedHeaders(Map<String, ParameterValue> headers, Optional<String> reserved) {
        this.headers = headers;
        this.reserved = reserved;
    }

    /**
     * Picks headers.
     *
     * @param metadata the headers of an RPC
     * @param pattern found in the names of those to pass on
     */
    public static ForwardedHeaders of(Metadata metadata, Pattern pattern) {
        Map<String, ParameterValue> headers = new LinkedHashMap<>();
        for (String name : metadata.keys()) {
            if (isOfTransport(name) || !pattern.matcher(name).find()) {
                continue;
            }
            if (RESERVED.contains(name) || name.startsWith(RESERVED_PREFIX)) {
                return new ForwardedHeaders(Map.of(), Optional.of(name));
            }
            String value = metadata.get(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER));
            if (value != null) {
                headers.put(name, new ParameterValue.Text(value));
            }
        }
        return headers.isEmpty() ? NONE : new ForwardedHeaders(headers, Optional.empty());
    }

    private static boolean isOfTransport(String name) {
        return TRANSPORT.contains(name)
                || name.startsWith(TRANSPORT_PREFIX)
                || name.endsWith(Metadata.BINARY_HEADER_SUFFIX);
    }

    /**
     * Adds the headers to the parameters of a request; a header outdoes a parameter of the same name.
     *
     * @throws InferenceException if one of the headers has a name that means something to the server
     */
    Map<String, ParameterValue> addTo(Map<String, ParameterValue> parameters) {
        if (reserved.isPresent()) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "Header '" + Quoted.text(reserved.get())
                            + "' is reserved for Triton usage and cannot be forwarded.");
        }
        if (headers.isEmpty()) {
            return parameters;
        }
        Map<String, ParameterValue> all = new LinkedHashMap<>(parameters);
        all.putAll(headers);
        return all;
    }
}
