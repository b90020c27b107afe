package dev.nereid.distribution.flags;

import java.time.Duration;

/** Flags of the metrics port. Written by the command line reader, then only read. */
public final class MetricsFlags {
    public boolean allow = true;
    public int port = 8002;

    /** Whether there are metrics of the machine's processors and memory. */
    public boolean allowCpu = true;

    /** Whether counters tell how long requests take. */
    public boolean countLatencies = true;

    /** How old a figure may be that is not made when it is asked for. */
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
                        "The address to listen at; 0.0.0.0 for all. Default: that of HTTP, or 127.0.0.1 without HTTP.",
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
                        value -> allowCpu = value),
                Flag.of(
                        "--allow-gpu-metrics",
                        FlagValue.TRUTH,
                        "Whether metrics tell of graphics processors. Without effect: they do not yet. Default: true.",
                        value -> {}),
                Flag.of(
                        "--metrics-config",
                        FlagValue.SETTING,
                        "A setting of the metrics. counter_latencies=false: counters do not tell how long requests take."
                                + " histogram_latencies, summary_latencies, summary_quantiles: without effect yet; others"
                                + " are ignored. May be given several times.",
                        this::configure));
    }

    /** As the reference server: one exact word counts, wherever it stands among others, and unknown settings do not. */
    private void configure(FlagValue.Setting setting) {
        if (setting.key().equals("counter_latencies") && setting.value().equals("false")) {
            countLatencies = false;
        }
    }

    /** Returns where metrics are served: where HTTP is, if it is, unless that was said. */
    String address(HttpFlags http) {
        if (!address.isEmpty()) {
            return address;
        }
        return http.allow ? http.address : FlagValue.LOOPBACK;
    }
}
