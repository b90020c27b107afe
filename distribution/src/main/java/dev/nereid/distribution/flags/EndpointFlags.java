package dev.nereid.distribution.flags;

import dev.nereid.distribution.process.StartException;
import java.util.ArrayList;
import java.util.List;

/** Flags of the HTTP, gRPC and metrics ports. Written by the command line reader, then only read. */
public final class EndpointFlags {
    public final HttpFlags http = new HttpFlags();
    public final GrpcFlags grpc = new GrpcFlags();
    public final MetricsFlags metrics = new MetricsFlags();
    public final ConnectionFlags connections = new ConnectionFlags();

    /** Adds the flags that set these fields. */
    public void declare(Flags flags) {
        http.declare(flags);
        grpc.declare(flags);
        metrics.declare(flags);
        connections.declare(flags);
    }

    /** Returns where metrics are served. */
    public String metricsAddress() {
        return metrics.address(http);
    }

    /** Checks what depends on several flags, above all that no two ports of one address are the same. */
    public void check() throws StartException {
        http.check();
        grpc.check();
        List<PortBinding> claims = new ArrayList<>(); // an endpoint that is off may have any port
        if (http.allow) {
            claims.add(new PortBinding("--http-port", http.address, http.port));
        }
        if (grpc.allow) {
            claims.add(new PortBinding("--grpc-port", grpc.address, grpc.port));
        }
        if (metrics.allow) {
            claims.add(new PortBinding("--metrics-port", metricsAddress(), metrics.port));
        }
        for (int i = 0; i < claims.size(); i++) {
            FlagValue.checkPort(claims.get(i).flag, claims.get(i).port);
            for (PortBinding earlier : claims.subList(0, i)) {
                claims.get(i).checkAgainst(earlier);
            }
        }
    }

    private record PortBinding(String flag, String address, int port) {
        void checkAgainst(PortBinding earlier) throws StartException {
            if (port != 0 && port == earlier.port && address.equals(earlier.address)) {
                throw new StartException(flag + ": " + port + " (expected: another port than " + earlier.flag + ")");
            }
        }
    }
}
