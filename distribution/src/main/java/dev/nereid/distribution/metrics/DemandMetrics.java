package dev.nereid.distribution.metrics;

import dev.nereid.api.statistics.DemandStatistics;
import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot.GaugeDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.util.List;
import java.util.TreeMap;

/** Metrics of models that are loaded on demand. Static functions only. */
final class DemandMetrics {
    private DemandMetrics() {}

    static List<MetricSnapshot> of(DemandStatistics demand) {
        GaugeSnapshot.Builder memory = GaugeSnapshot.builder()
                .name("nereid_model_memory_bytes")
                .help("Memory that models take of the budget, or that is reserved for their loads, by model.");
        new TreeMap<>(demand.memory())
                .forEach((model, bytes) -> memory.dataPoint(GaugeDataPointSnapshot.builder()
                        .value((double) bytes)
                        .labels(Labels.of("model", model))
                        .build()));
        return List.of(
                memory.build(),
                gauge(
                        "nereid_model_memory_budget_bytes",
                        "Memory that models may take together; 0 for no limit.",
                        demand.memoryBudget()),
                gauge("nereid_model_waiting_requests", "Requests that wait for the load of a model.", demand.waiting()),
                counter("nereid_model_demand_loads", "Loads that requests caused.", demand.loads()),
                counter("nereid_model_evictions", "Models that were unloaded to free memory.", demand.evictions()));
    }

    private static MetricSnapshot gauge(String name, String help, long value) {
        return GaugeSnapshot.builder()
                .name(name)
                .help(help)
                .dataPoint(
                        GaugeDataPointSnapshot.builder().value((double) value).build())
                .build();
    }

    private static MetricSnapshot counter(String name, String help, long value) {
        return CounterSnapshot.builder()
                .name(name)
                .help(help)
                .dataPoint(
                        CounterDataPointSnapshot.builder().value((double) value).build())
                .build();
    }
}
