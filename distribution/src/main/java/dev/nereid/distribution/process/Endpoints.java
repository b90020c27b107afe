package dev.nereid.distribution.process;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Endpoints of a running server; empty for closed ports. Immutable.
 *
 * @param http requests and administration over HTTP
 * @param grpc the same over gRPC
 * @param metrics Prometheus' text
 */
public record Endpoints(Optional<Endpoint> http, Optional<Endpoint> grpc, Optional<Endpoint> metrics) {
    /** No port is open. */
    public static final Endpoints NONE = new Endpoints(Optional.empty(), Optional.empty(), Optional.empty());

    /** Returns the address of HTTP as a client on this machine writes it. */
    public Optional<String> localHttp() {
        return http.map(endpoint -> endpoint.local().url());
    }

    /** Returns the ports that are open. */
    public List<Endpoint> open() {
        return Stream.of(http, grpc, metrics).flatMap(Optional::stream).toList();
    }
}
