package dev.nereid.distribution.metrics;

import dev.nereid.cuda.GpuMonitor;
import dev.nereid.cuda.GpuReading;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Utilization, memory, power and energy of the GPUs, by the names of the reference server. Without the library of the
 * driver there is none, and no family. Safe for use by any thread.
 */
final class GpuMetrics {
    private static final Logger LOG = LoggerFactory.getLogger(GpuMetrics.class);

    static final String LABEL = "gpu_uuid";

    private static final String ENERGY = "nv_energy_consumption";

    private final Source source;

    /** Energy at the first measurement, by GPU; counters begin with it. */
    private final Map<String, Double> firstJoules = new ConcurrentHashMap<>();

    /** {@code true} while a measurement is in progress; no other starts meanwhile. Guards the two fields below. */
    private final AtomicBoolean polling = new AtomicBoolean();

    private boolean opened;
    private @Nullable Supplier<List<GpuReading>> gpus;

    private volatile List<GpuReading> latest = List.of();

    GpuMetrics(Source source) {
        this.source = source;
    }

    /** Returns the metrics of the GPUs of this machine, which are empty until they are polled. */
    static GpuMetrics ofThisMachine() {
        return new GpuMetrics(() -> GpuMonitor.open()::read);
    }

    /** Measures. The first time, it looks for the library; blocks for some milliseconds for each GPU. */
    void poll() {
        if (polling.compareAndSet(false, true)) {
            try {
                open().ifPresent(source -> measure(source.get()));
            } finally {
                polling.set(false);
            }
        }
    }

    private Optional<Supplier<List<GpuReading>>> open() {
        if (!opened) {
            opened = true;
            try {
                gpus = source.open();
            } catch (IOException e) {
                LOG.debug("no metrics of GPUs: {}", e.getMessage());
            }
        }
        return Optional.ofNullable(gpus);
    }

    private void measure(List<GpuReading> readings) {
        readings.forEach(gpu -> gpu.joules().ifPresent(joules -> firstJoules.putIfAbsent(gpu.uuid(), joules)));
        latest = readings;
    }

    /** Returns the gauges of the latest measurement; a family without a value is left out. */
    List<MetricSnapshot> gauges() {
        List<GpuReading> readings = latest;
        List<MetricSnapshot> gauges = new ArrayList<>();
        gauge("nv_gpu_utilization", "GPU utilization rate [0.0 - 1.0)", readings, GpuReading::utilization)
                .ifPresent(gauges::add);
        gauge("nv_gpu_memory_total_bytes", "GPU total memory, in bytes", readings, gpu -> real(gpu.memoryBytes()))
                .ifPresent(gauges::add);
        gauge("nv_gpu_memory_used_bytes", "GPU used memory, in bytes", readings, gpu -> real(gpu.memoryBytesInUse()))
                .ifPresent(gauges::add);
        gauge("nv_gpu_power_usage", "GPU power usage in watts", readings, GpuReading::watts)
                .ifPresent(gauges::add);
        gauge("nv_gpu_power_limit", "GPU power management limit in watts", readings, GpuReading::wattsLimit)
                .ifPresent(gauges::add);
        return gauges;
    }

    /** Returns the counter of energy since the first measurement, in the Prometheus text format. */
    byte[] counters() {
        CounterText text = new CounterText();
        if (!firstJoules.isEmpty()) {
            text.family(ENERGY, "GPU energy consumption in joules since the server started");
        }
        for (GpuReading gpu : latest) {
            Double first = firstJoules.get(gpu.uuid());
            if (first != null && gpu.joules().isPresent()) {
                text.sample(ENERGY, Map.of(LABEL, gpu.uuid()), gpu.joules().getAsDouble() - first);
            }
        }
        return text.toByteArray();
    }

    private static OptionalDouble real(OptionalLong value) {
        return value.isPresent() ? OptionalDouble.of((double) value.getAsLong()) : OptionalDouble.empty();
    }

    private static Optional<MetricSnapshot> gauge(
            String name, String help, List<GpuReading> readings, Function<GpuReading, OptionalDouble> value) {
        List<GpuReading> known =
                readings.stream().filter(gpu -> value.apply(gpu).isPresent()).toList();
        return known.isEmpty()
                ? Optional.empty()
                : Optional.of(Snapshots.gauge(
                        name,
                        help,
                        known,
                        gpu -> Labels.of(LABEL, gpu.uuid()),
                        gpu -> value.apply(gpu).getAsDouble()));
    }

    /** Opens what reads the GPUs. */
    @FunctionalInterface
    interface Source {
        /** Opens it, or fails with the reason. */
        Supplier<List<GpuReading>> open() throws IOException;
    }
}
