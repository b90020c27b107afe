package dev.nereid.distribution.metrics;

import io.prometheus.metrics.model.snapshots.CounterSnapshot;
import io.prometheus.metrics.model.snapshots.CounterSnapshot.CounterDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot;
import io.prometheus.metrics.model.snapshots.GaugeSnapshot.GaugeDataPointSnapshot;
import io.prometheus.metrics.model.snapshots.Labels;
import io.prometheus.metrics.model.snapshots.MetricSnapshot;
import java.util.Collection;
import java.util.List;
import java.util.function.Function;
import java.util.function.ToDoubleFunction;

/** Gauges and counters of the Prometheus library. Static functions only. */
final class Snapshots {
    private Snapshots() {}

    static MetricSnapshot gauge(String name, String help, double value) {
        return gauge(name, help, List.of(value), _ -> Labels.EMPTY, number -> number);
    }

    static <T> MetricSnapshot gauge(
            String name, String help, Collection<T> items, Function<T, Labels> labels, ToDoubleFunction<T> value) {
        GaugeSnapshot.Builder gauge = GaugeSnapshot.builder().name(name).help(help);
        items.forEach(item -> gauge.dataPoint(GaugeDataPointSnapshot.builder()
                .value(value.applyAsDouble(item))
                .labels(labels.apply(item))
                .build()));
        return gauge.build();
    }

    static MetricSnapshot counter(String name, String help, double value) {
        return counter(name, help, List.of(value), _ -> Labels.EMPTY, number -> number);
    }

    static <T> MetricSnapshot counter(
            String name, String help, Collection<T> items, Function<T, Labels> labels, ToDoubleFunction<T> value) {
        CounterSnapshot.Builder counter = CounterSnapshot.builder().name(name).help(help);
        items.forEach(item -> counter.dataPoint(CounterDataPointSnapshot.builder()
                .value(value.applyAsDouble(item))
                .labels(labels.apply(item))
                .build()));
        return counter.build();
    }
}
