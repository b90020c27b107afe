package dev.nereid.distribution.flags;

import dev.nereid.distribution.process.StartException;
import java.util.ArrayList;
import java.util.List;

/** Flags of the HTTP, gRPC and metrics ports. Written by the command line reader, then only read. */
public final class EndpointFlags {
    public final HttpFlags http = new HttpFlags();
    public final GrpcFlags grpc = new GrpcFlags();
    public final MetricsFlags metrics = new MetricsFlags();
    public final ConnectionFlags connections = new ConnectionFlags(http.options, grpc.options);

    public void declare(Flags flags) {
        http.declare(flags);
        grpc.declare(flags);
        metrics.declare(flags);
        connections.declare(flags);
        CompatibilityFlags.declare(flags);
    }

    public String metricsAddress() {
        return metrics.address(http);
    }

    /** Checks conditions on several flags. They are contradictions, and two ports with the same number and address. */
    public void check() throws StartException {
        http.check();
        grpc.check();
        List<PortBinding> bindings = new ArrayList<>(); // a disabled endpoint may have any port
        if (http.allow) {
            bindings.add(new PortBinding("--http-port", http.options.address, http.options.port));
        }
        if (grpc.allow) {
            bindings.add(new PortBinding("--grpc-port", grpc.options.address, grpc.options.port));
        }
        if (metrics.allow) {
            bindings.add(new PortBinding("--metrics-port", metricsAddress(), metrics.port));
        }
        for (int i = 0; i < bindings.size(); i++) {
            FlagValue.checkPort(bindings.get(i).flag, bindings.get(i).port);
            for (PortBinding earlier : bindings.subList(0, i)) {
                bindings.get(i).checkAgainst(earlier);
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
