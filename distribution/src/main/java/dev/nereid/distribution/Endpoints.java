package dev.nereid.distribution;

import java.util.List;
import java.util.Optional;
import java.util.stream.Stream;

/**
 * Where the ports of a running server listen; empty for those that are closed. Immutable.
 *
 * @param http requests and administration over HTTP
 * @param grpc the same over gRPC
 * @param metrics Prometheus' text
 */
record Endpoints(Optional<Endpoint> http, Optional<Endpoint> grpc, Optional<Endpoint> metrics) {
    /** No port is open. */
    static final Endpoints NONE = new Endpoints(Optional.empty(), Optional.empty(), Optional.empty());

    /** Returns the address of HTTP as a client on this machine writes it. */
    Optional<String> localHttp() {
        return http.map(endpoint -> endpoint.local().url());
    }

    /** Returns the ports that are open. */
    List<Endpoint> open() {
        return Stream.of(http, grpc, metrics).flatMap(Optional::stream).toList();
    }
}
