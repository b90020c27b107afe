package dev.nereid.distribution.process;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/** Endpoints of a running server; empty for closed ports. Immutable. */
public record Endpoints(Optional<Endpoint> http, Optional<Endpoint> grpc, Optional<Endpoint> metrics) {
    /** No open port. */
    public static final Endpoints NONE = new Endpoints(Optional.empty(), Optional.empty(), Optional.empty());

    /** Returns the base URL of HTTP for clients on this machine. */
    public Optional<String> localHttp() {
        return http.map(endpoint -> endpoint.local().url());
    }

    public List<Endpoint> open() {
        return Stream.of(http, grpc, metrics).flatMap(Optional::stream).toList();
    }
}
