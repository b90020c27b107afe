package dev.nereid.distribution;

import java.time.Duration;

/** The flags of the port for metrics. Written by the command line reader, then only read. */
final class MetricsFlags {
    boolean allow = true;
    int port = 8002;

    /** Whether there are metrics of the machine's processors and memory. */
    boolean allowCpu = true;

    /** How old a figure may be that is not made when it is asked for. */
    Duration interval = Duration.ofSeconds(2);

    private String address = "";

    /** Adds the flags that set these fields. */
    void declare(Flags flags) {
        flags.add(
                Flag.of(
                        "--allow-metrics",
                        FlagValue.TRUTH,
                        "Whether there is a port for metrics. Default: true.",
                        value -> allow = value),
                Flag.of(
                        "--metrics-address",
                        FlagValue.text("ADDRESS"),
                        "The address to listen at; 0.0.0.0 for all. Default: that of HTTP.",
                        value -> address = value),
                Flag.of(
                        "--metrics-port",
                        FlagValue.PORT,
                        "The port; 0 for any that is free. Default: 8002.",
                        value -> port = value),
                Flag.of(
                        "--metrics-interval-ms",
                        FlagValue.MILLIS,
                        "How often the use of the machine is looked at, at least. Default: 2000.",
                        value -> interval = value),
                Flag.of(
                        "--allow-cpu-metrics",
                        FlagValue.TRUTH,
                        "Whether metrics tell of the machine's processors and memory. Default: true.",
                        value -> allowCpu = value));
    }

    /** Returns where metrics are served, where HTTP is unless that was said. */
    String address(HttpFlags http) {
        return address.isEmpty() ? http.address : address;
    }
}
