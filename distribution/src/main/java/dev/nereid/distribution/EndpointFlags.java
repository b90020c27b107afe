package dev.nereid.distribution;

import java.util.ArrayList;
import java.util.List;

/** The flags of the ports. Written by the command line reader, then only read. */
final class EndpointFlags {
    final HttpFlags http = new HttpFlags();
    final GrpcFlags grpc = new GrpcFlags();
    final MetricsFlags metrics = new MetricsFlags();
    final ConnectionFlags connections = new ConnectionFlags();

    /** Adds the flags that set these fields. */
    void declare(Flags flags) {
        http.declare(flags);
        grpc.declare(flags);
        metrics.declare(flags);
        connections.declare(flags);
    }

    /** Returns where metrics are served. */
    String metricsAddress() {
        return metrics.address(http);
    }

    /** Checks what depends on several flags, above all that no two ports of one address are the same. */
    void check() throws StartFailure {
        http.check();
        grpc.check();
        List<Claim> claims = new ArrayList<>(); // an endpoint that is off may have any port
        if (http.allow) {
            claims.add(new Claim("--http-port", http.address, http.port));
        }
        if (grpc.allow) {
            claims.add(new Claim("--grpc-port", grpc.address, grpc.port));
        }
        if (metrics.allow) {
            claims.add(new Claim("--metrics-port", metricsAddress(), metrics.port));
        }
        for (int i = 0; i < claims.size(); i++) {
            FlagValue.checkPort(claims.get(i).flag, claims.get(i).port);
            for (Claim earlier : claims.subList(0, i)) {
                claims.get(i).checkAgainst(earlier);
            }
        }
    }

    private record Claim(String flag, String address, int port) {
        void checkAgainst(Claim earlier) throws StartFailure {
            if (port != 0 && port == earlier.port && address.equals(earlier.address)) {
                throw new StartFailure(flag + ": " + port + " (expected: another port than " + earlier.flag + ")");
            }
        }
    }
}
