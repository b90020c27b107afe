package dev.nereid.distribution;

import java.util.ArrayList;
import java.util.List;
import picocli.CommandLine.Mixin;
import picocli.CommandLine.Option;

/** The flags of the ports. Written by the command line reader, then only read. */
final class EndpointFlags {
    static final String LOCAL = "127.0.0.1";
    static final String ADDRESS = "The address to listen at; 0.0.0.0 for all. Default: ${DEFAULT-VALUE}.";
    static final String PORT = "The port; 0 for any that is free. Default: ${DEFAULT-VALUE}.";

    @Mixin
    final HttpFlags http = new HttpFlags();

    @Mixin
    final GrpcFlags grpc = new GrpcFlags();

    @Option(
            names = "--allow-metrics",
            arity = "1",
            paramLabel = "BOOL",
            defaultValue = "true",
            converter = FlagValues.Truth.class,
            description = "Whether there is a port for metrics. Default: ${DEFAULT-VALUE}.")
    boolean allowMetrics = true;

    @Option(
            names = "--metrics-address",
            paramLabel = "ADDRESS",
            description = "The address to listen at; 0.0.0.0 for all. Default: that of HTTP.")
    private String metricsAddress = "";

    @Option(
            names = "--metrics-port",
            paramLabel = "PORT",
            defaultValue = "8002",
            converter = FlagValues.Port.class,
            description = PORT)
    int metricsPort = 8002;

    /** Returns where metrics are served. */
    String metricsAddress() {
        return metricsAddress.isEmpty() ? http.address : metricsAddress;
    }

    /** Checks that no two ports of one address are the same. */
    void check() throws StartFailure {
        List<Claim> claims = new ArrayList<>();
        if (http.allow) {
            claims.add(new Claim("--http-port", http.address, http.port));
        }
        if (grpc.allow) {
            claims.add(new Claim("--grpc-port", grpc.address, grpc.port));
        }
        if (allowMetrics) {
            claims.add(new Claim("--metrics-port", metricsAddress(), metricsPort));
        }
        for (int i = 0; i < claims.size(); i++) {
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
