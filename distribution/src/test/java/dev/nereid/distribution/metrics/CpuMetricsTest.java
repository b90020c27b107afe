package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;
import java.util.TreeMap;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

final class CpuMetricsTest {
    @TempDir
    private Path proc;

    private Map<String, Double> read(CpuMetrics metrics) {
        Map<String, Double> values = new TreeMap<>();
        metrics.gauges().forEach(family -> {
            GaugeSnapshot gauge = (GaugeSnapshot) family;
            values.put(
                    gauge.getMetadata().getName(),
                    gauge.getDataPoints().getFirst().getValue());
        });
        return values;
    }

    private void stat(String line) throws IOException {
        Files.writeString(proc.resolve("stat"), line + "\ncpu0 1 2 3\n");
    }

    @Test
    void reportsUtilizationBetweenTwoPolls() throws IOException {
        CpuMetrics metrics = new CpuMetrics(proc);
        stat("cpu  100 10 20 1000 50 1 2 3 7 7");
        metrics.poll();
        assertThat(read(metrics)).as("one measurement gives no utilization").isEmpty();

        stat("cpu  110 15 25 1020 60 3 4 9 99 99");
        metrics.poll();

        assertThat(read(metrics)).containsExactly(Map.entry("nv_cpu_utilization", 30.0 / 60.0));

        metrics.poll();
        assertThat(read(metrics)).as("no time has passed").containsExactly(Map.entry("nv_cpu_utilization", 0.5));
    }

    @Test
    void reportsTheMemory() throws IOException {
        Files.writeString(proc.resolve("meminfo"), """
                MemTotal:       16000 kB
                MemFree:         1000 kB
                MemAvailable:    4000 kB
                HugePages_Total:       0
                """);

        assertThat(read(new CpuMetrics(proc)))
                .containsExactly(
                        Map.entry("nv_cpu_memory_total_bytes", 16000.0 * 1024),
                        Map.entry("nv_cpu_memory_used_bytes", 12000.0 * 1024));
    }

    @Test
    void reportsNothingWithoutProc() throws IOException {
        CpuMetrics metrics = new CpuMetrics(proc);
        metrics.poll();
        stat("intr 5");
        metrics.poll();
        Files.writeString(proc.resolve("meminfo"), "MemTotal: much\n");

        assertThat(read(metrics)).isEmpty();
    }
}
