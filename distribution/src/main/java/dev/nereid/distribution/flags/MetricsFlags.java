package dev.nereid.distribution.flags;

import java.time.Duration;

/** Flags of the metrics port. Written by the command line reader, then only read. */
public final class MetricsFlags {
    public boolean allow = true;
    public int port = 8002;

    /** {@code true} if metrics include processors and memory of the machine. */
    public boolean allowCpu = true;

    /** {@code true} if metrics include GPUs. */
    public boolean allowGpu = true;

    /** {@code true} if metrics include counters of request durations. */
    public boolean countLatencies = true;

    /** Maximum age of values that are not computed per request. */
    public Duration interval = Duration.ofSeconds(2);

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
                        "The address to bind; 0.0.0.0 for all. Default: that of HTTP, or 127.0.0.1 without HTTP.",
                        value -> address = value),
                Flag.of(
                        "--metrics-port",
                        FlagValue.PORT,
                        "The port; 0 for any that is free. Default: 8002.",
                        value -> port = value),
                Flag.of(
                        "--metrics-interval-ms",
                        FlagValue.MILLIS,
                        "The maximum interval between measurements of the machine. Default: 2000.",
                        value -> interval = value),
                Flag.of(
                        "--allow-cpu-metrics",
                        FlagValue.TRUTH,
                        "Whether metrics include processors and memory of the machine. Default: true.",
                        value -> allowCpu = value),
                Flag.of(
                        "--allow-gpu-metrics",
                        FlagValue.TRUTH,
                        "Whether metrics include utilization, memory and power of GPUs, where the machine has the library"
                                + " of the driver for that, libnvidia-ml.so.1. Default: true.",
                        value -> allowGpu = value),
                Flag.of(
                        "--metrics-config",
                        FlagValue.SETTING,
                        "A setting of the metrics. counter_latencies=false: no counters of request durations."
                                + " histogram_latencies, summary_latencies, summary_quantiles: without effect yet;"
                                + " others are ignored. May be given several times.",
                        this::configure));
    }

    /**
     * Reads a setting as the reference server does. Only this exact text has an effect, and unknown settings are
     * ignored.
     */
    private void configure(FlagValue.Setting setting) {
        if (setting.key().equals("counter_latencies") && setting.value().equals("false")) {
            countLatencies = false;
        }
    }

    /** Returns the address of the metrics port. By default it is that of HTTP, or the loopback address without HTTP. */
    String address(HttpFlags http) {
        if (!address.isEmpty()) {
            return address;
        }
        return http.allow ? http.address : FlagValue.LOOPBACK;
    }
}
