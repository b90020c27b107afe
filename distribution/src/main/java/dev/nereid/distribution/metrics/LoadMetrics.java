package dev.nereid.distribution.metrics;

import dev.nereid.api.statistics.LoadCounts;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import io.prometheus.metrics.model.snapshots.SummarySnapshot;
import io.prometheus.metrics.model.snapshots.SummarySnapshot.SummaryDataPointSnapshot;
import java.util.List;
import java.util.function.ToLongFunction;

/** Metrics of loads and unloads. Static functions only. */
final class LoadMetrics {
    private static final double NANOS_PER_SECOND = 1e9;

    private LoadMetrics() {}

    static List<MetricSnapshot> of(List<LoadCounts> models) {
        SummarySnapshot.Builder times = SummarySnapshot.builder()
                .name("nereid_model_load_duration_seconds")
                .help("Time of the loads of versions that did not fail, by model.");
        for (LoadCounts model : models) {
            times.dataPoint(SummaryDataPointSnapshot.builder()
                    .count(model.loads())
                    .sum(model.loadTime().toNanos() / NANOS_PER_SECOND)
                    .labels(labels(model))
                    .build());
        }
        return List.of(
                counter("nereid_model_loads", "Versions that were loaded, by model.", models, LoadCounts::loads),
                counter(
                        "nereid_model_load_failures",
                        "Loads of versions that failed, by model.",
                        models,
                        LoadCounts::failures),
                counter(
                        "nereid_model_unloads",
                        "Versions that were unloaded, also by a reload, by model.",
                        models,
                        LoadCounts::unloads),
                times.build());
    }

    private static MetricSnapshot counter(
            String name, String help, List<LoadCounts> models, ToLongFunction<LoadCounts> value) {
        return Snapshots.counter(name, help, models, LoadMetrics::labels, value::applyAsLong);
    }

    private static Labels labels(LoadCounts model) {
        return Labels.of("model", model.model());
    }
}
