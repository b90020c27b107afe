package dev.nereid.distribution.metrics;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.DemandStatistics;
import io.prometheus.metrics.expositionformats.PrometheusTextFormatWriter;
import io.prometheus.metrics.model.snapshots.MetricSnapshots;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class DemandMetricsTest {
    @Test
    void reportsMemoryByModelAndCounts() throws IOException {
        DemandStatistics demand = new DemandStatistics(3000, Map.of("b", 1000L, "a", 500L), 7, 5, 2);
        ByteArrayOutputStream text = new ByteArrayOutputStream();
        MetricSnapshots.Builder snapshots = MetricSnapshots.builder();
        DemandMetrics.of(demand).forEach(snapshots::metricSnapshot);

        PrometheusTextFormatWriter.create().write(text, snapshots.build());

        assertThat(text.toString(StandardCharsets.UTF_8).lines().filter(line -> !line.startsWith("#")))
                .containsExactlyInAnyOrder(
                        "nereid_model_memory_bytes{model=\"a\"} 500.0",
                        "nereid_model_memory_bytes{model=\"b\"} 1000.0",
                        "nereid_model_memory_budget_bytes 3000.0",
                        "nereid_model_waiting_requests 2.0",
                        "nereid_model_demand_loads_total 7.0",
                        "nereid_model_evictions_total 5.0");
    }
}
