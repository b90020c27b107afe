package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.cuda.GpuReading;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.OptionalDouble;
import java.util.OptionalLong;
import java.util.TreeMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

final class GpuMetricsTest {
    private static GpuReading reading(String uuid, double joules) {
        return new GpuReading(
                uuid,
                OptionalDouble.of(0.25),
                OptionalLong.of(80L << 30),
                OptionalLong.of(1L << 30),
                OptionalDouble.of(79.5),
                OptionalDouble.empty(),
                OptionalDouble.of(joules));
    }

    private static Map<String, Double> gauges(GpuMetrics metrics) {
        Map<String, Double> values = new TreeMap<>();
        metrics.gauges()
                .forEach(family -> ((GaugeSnapshot) family)
                        .getDataPoints()
                        .forEach(point -> values.put(
                                family.getMetadata().getName() + " "
                                        + point.getLabels().get("gpu_uuid"),
                                point.getValue())));
        return values;
    }

    @Test
    void reportsWhatEachGpuReports() {
        GpuMetrics metrics = new GpuMetrics(() -> () -> List.of(reading("GPU-0", 1), reading("GPU-1", 1)));
        assertThat(metrics.gauges()).as("not polled yet").isEmpty();

        metrics.poll();

        assertThat(gauges(metrics))
                .containsExactly(
                        Map.entry("nv_gpu_memory_total_bytes GPU-0", (double) (80L << 30)),
                        Map.entry("nv_gpu_memory_total_bytes GPU-1", (double) (80L << 30)),
                        Map.entry("nv_gpu_memory_used_bytes GPU-0", (double) (1L << 30)),
                        Map.entry("nv_gpu_memory_used_bytes GPU-1", (double) (1L << 30)),
                        Map.entry("nv_gpu_power_usage GPU-0", 79.5),
                        Map.entry("nv_gpu_power_usage GPU-1", 79.5),
                        Map.entry("nv_gpu_utilization GPU-0", 0.25),
                        Map.entry("nv_gpu_utilization GPU-1", 0.25));
    }

    @Test
    void countsTheEnergySinceTheFirstMeasurement() {
        AtomicInteger joules = new AtomicInteger(5_000_000);
        GpuMetrics metrics = new GpuMetrics(() -> () -> List.of(reading("GPU-0", joules.getAndAdd(1500) / 2.0)));

        metrics.poll();
        metrics.poll();

        assertThat(new String(metrics.counters(), StandardCharsets.UTF_8)).isEqualTo("""
                        # HELP nv_energy_consumption GPU energy consumption in joules since the server started
                        # TYPE nv_energy_consumption counter
                        nv_energy_consumption{gpu_uuid="GPU-0"} 750.0
                        """);
    }

    @Test
    void looksForTheLibraryOnce() {
        AtomicInteger opened = new AtomicInteger();
        GpuMetrics metrics = new GpuMetrics(() -> {
            opened.incrementAndGet();
            throw new IOException("libnvidia-ml.so.1: cannot open shared object file");
        });

        metrics.poll();
        metrics.poll();

        assertThat(opened).hasValue(1);
        assertThat(metrics.gauges()).isEmpty();
        assertThat(metrics.counters()).isEmpty();
    }
}
