package dev.nereid.distribution.metrics;

import dev.nereid.api.statistics.ModelVersionTags;
import java.math.BigDecimal;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Function;
import java.util.function.ToLongFunction;

/**
 * Writes counters in the Prometheus text format without the suffix {@code _total}. The writer of the Prometheus
 * library adds that suffix; counters of the reference server have none. Confined to one thread.
 */
final class CounterText {
    private final StringBuilder text = new StringBuilder();

    /** Begins a family; its samples follow. */
    CounterText family(String name, String help) {
        return family(name, help, "counter");
    }

    /** Begins a family of gauges; its samples follow. */
    CounterText gauge(String name, String help) {
        return family(name, help, "gauge");
    }

    /** Adds a family with a sample of each model; nothing if there is none. */
    <M> CounterText family(
            String name, String help, List<M> models, Function<M, ModelVersionTags> version, ToLongFunction<M> value) {
        return models.isEmpty() ? this : family(name, help).samples(name, models, version, value);
    }

    /** Adds a family of gauges with a sample of each model; nothing if there is none. */
    <M> CounterText gauge(
            String name, String help, List<M> models, Function<M, ModelVersionTags> version, ToLongFunction<M> value) {
        return models.isEmpty() ? this : gauge(name, help).samples(name, models, version, value);
    }

    private <M> CounterText samples(
            String name, List<M> models, Function<M, ModelVersionTags> version, ToLongFunction<M> value) {
        models.forEach(model -> sample(name, ModelMetrics.labels(version.apply(model)), value.applyAsLong(model)));
        return this;
    }

    private CounterText family(String name, String help, String type) {
        text.append("# HELP ").append(name).append(' ').append(help).append('\n');
        text.append("# TYPE ").append(name).append(' ').append(type).append('\n');
        return this;
    }

    /** Adds a sample of the current family, with labels sorted by name. */
    CounterText sample(String name, Map<String, String> labels, long value) {
        return sample(name, labels, String.valueOf(value));
    }

    /** Adds a sample likewise that need not be a whole number. */
    CounterText sample(String name, Map<String, String> labels, double value) {
        return sample(name, labels, BigDecimal.valueOf(value).toPlainString());
    }

    private CounterText sample(String name, Map<String, String> labels, String value) {
        text.append(name);
        String separator = "{";
        for (Map.Entry<String, String> label : new TreeMap<>(labels).entrySet()) {
            text.append(separator).append(label.getKey()).append("=\"");
            appendEscaped(label.getValue());
            text.append('"');
            separator = ",";
        }
        text.append(labels.isEmpty() ? " " : "} ").append(value).append('\n');
        return this;
    }

    private void appendEscaped(String value) {
        for (int i = 0; i < value.length(); i++) {
            char character = value.charAt(i);
            switch (character) {
                case '\\' -> text.append("\\\\");
                case '"' -> text.append("\\\"");
                case '\n' -> text.append("\\n");
                default -> text.append(character);
            }
        }
    }

    byte[] toByteArray() {
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }
}
