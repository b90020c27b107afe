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

    void declare(Flags flags) {
        flags.add("--allow-metrics", FlagValue.TRUTH, allow, v -> allow = v)
                .help("Whether there is a port for metrics.");
        flags.add("--metrics-address", FlagValue.text("ADDRESS"), v -> address = v)
                .help("The address to bind; 0.0.0.0 for all. Default: that of HTTP, or 127.0.0.1 without HTTP.");
        flags.add("--metrics-port", FlagValue.PORT, port, v -> port = v).help("The port; 0 for any that is free.");
        flags.add("--metrics-interval-ms", FlagValue.MILLIS, interval, v -> interval = v)
                .help("The maximum interval between measurements of the machine.");
        flags.add("--allow-cpu-metrics", FlagValue.TRUTH, allowCpu, v -> allowCpu = v)
                .help("Whether metrics include processors and memory of the machine.");
        flags.add("--allow-gpu-metrics", FlagValue.TRUTH, allowGpu, v -> allowGpu = v)
                .help("Whether metrics include utilization, memory and power of GPUs, where the machine has the"
                        + " library of the driver for that, libnvidia-ml.so.1.");
        flags.add("--metrics-config", FlagValue.SETTING, this::configure)
                .help("A setting of the metrics. counter_latencies=false: no counters of request durations."
                        + " histogram_latencies, summary_latencies, summary_quantiles: without effect yet; others are"
                        + " ignored. May be given several times.");
    }

    /** Reads a setting as the reference server does: only this exact text has an effect, and others are ignored. */
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
        return http.allow ? http.options.address : "127.0.0.1";
    }
}
