package dev.nereid.api.frontend;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.ErrorCode;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.regex.Pattern;

/** Headers of a request or gRPC call that become parameters for the backend. Immutable. */
public final class ForwardedHeaders {
    /** No headers. */
    public static final ForwardedHeaders NONE = new ForwardedHeaders(List.of(), Optional.empty());

    private static final Set<String> RESERVED = Set.of(
            "sequence_id", "sequence_start", "sequence_end", "priority", "timeout", "headers", "binary_data_output");

    private final List<Header> headers;
    private final Optional<String> reserved;

    private record Header(String name, ParameterValue value) {}

    private ForwardedHeaders(List<Header> headers, Optional<String> reserved) {
        this.headers = headers;
        this.reserved = reserved;
    }

    /** Collects the headers to forward. Confined to one thread. */
    public static final class Builder {
        private final Pattern names;
        private List<Header> headers = List.of();
        private Optional<String> reserved = Optional.empty();

        /**
         * Creates a builder without headers.
         *
         * @param names found in the names of the headers to forward
         */
        public Builder(Pattern names) {
            this.names = names;
        }

        /**
         * Says whether headers of a name are forwarded.
         *
         * @param name the name
         * @return whether the pattern is found in it
         */
        public boolean matches(String name) {
            return names.matcher(name).find();
        }

        /**
         * Adds a header. Of equal names the last one counts.
         *
         * @param name a name that matches; the first reserved one makes {@link ForwardedHeaders#addTo} fail
         * @param value the header's value as text
         */
        public void add(String name, String value) {
            if (RESERVED.contains(name) || name.startsWith(InferResponse.RESERVED_PREFIX)) {
                if (reserved.isEmpty()) {
                    reserved = Optional.of(name);
                }
                return;
            }
            if (headers.isEmpty()) {
                headers = new ArrayList<>(2);
            }
            headers.add(new Header(name, new ParameterValue.Text(value)));
        }

        /**
         * Ends the collection. The builder is not used afterwards.
         *
         * @return the headers
         */
        public ForwardedHeaders build() {
            return headers.isEmpty() && reserved.isEmpty() ? NONE : new ForwardedHeaders(headers, reserved);
        }
    }

    /**
     * Adds the headers to the parameters of a request. A header replaces a parameter of the same name, since it may come
     * from a proxy that clients cannot bypass.
     *
     * @param parameters the parameters for the backend; stay as they are
     * @return the parameters and headers
     * @throws InferenceException if one of the headers has a reserved name
     */
    public Map<String, ParameterValue> addTo(Map<String, ParameterValue> parameters) {
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
        for (Header header : headers) {
            all.put(header.name, header.value);
        }
        return all;
    }
}
