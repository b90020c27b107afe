package dev.nereid.distribution.metrics;

import dev.nereid.api.statistics.DemandStatistics;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;

/** Metrics of models that are loaded on demand. Static functions only. */
final class DemandMetrics {
    private DemandMetrics() {}

    static List<MetricSnapshot> of(DemandStatistics demand) {
        return List.of(
                Snapshots.gauge(
                        "nereid_model_memory_bytes",
                        "Memory that models take of the budget, or that is reserved for their loads, by model.",
                        new TreeMap<>(demand.memory()).entrySet(),
                        memory -> Labels.of("model", memory.getKey()),
                        Map.Entry::getValue),
                Snapshots.gauge(
                        "nereid_model_memory_budget_bytes",
                        "Memory that models may take together; 0 for no limit.",
                        (double) demand.memoryBudget()),
                Snapshots.gauge(
                        "nereid_model_waiting_requests",
                        "Requests that wait for the load of a model.",
                        demand.waiting()),
                Snapshots.counter("nereid_model_demand_loads", "Loads that requests caused.", (double) demand.loads()),
                Snapshots.counter("nereid_model_evictions", "Models that were unloaded to free memory.", (double)
                        demand.evictions()));
    }
}
