package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

final class CountingMetricsTest {
    private static final Map<String, String> NONE = Map.of();

    private final Metrics metrics = Metrics.unpublished();

    @Test
    void countsUnderOneObjectForEachNameAndLabels() {
        Metrics.Counter counter = metrics.counter("tokens", "Tokens.", Map.of("kind", "a"));
        counter.increment(2);
        metrics.counter("tokens", "Tokens.", Map.of("kind", "a")).increment(0.5);
        metrics.counter("tokens", "Tokens.", Map.of("kind", "b")).increment(7);

        assertThat(counter)
                .isInstanceOfSatisfying(
                        CountingMetrics.Count.class,
                        count -> assertThat(count.value()).isEqualTo(2.5));
        assertThatThrownBy(() -> counter.increment(-1)).isInstanceOf(IllegalArgumentException.class);
        assertThatThrownBy(() -> counter.increment(Double.NaN)).isInstanceOf(IllegalArgumentException.class);
    }

    @Test
    void gaugesRiseAndFall() {
        Metrics.Gauge gauge = metrics.gauge("depth", "Depth.", NONE);
        gauge.set(5);
        gauge.increment(-7.5);

        assertThat(gauge)
                .isInstanceOfSatisfying(
                        CountingMetrics.Level.class,
                        level -> assertThat(level.value()).isEqualTo(-2.5));
    }

    @Test
    void histogramsCountByBucket() {
        Metrics.Histogram histogram = metrics.histogram("seconds", "Seconds.", NONE, 1, 2);
        for (double value : new double[] {0, 1, 1.5, 2, 3, Double.NaN, Double.POSITIVE_INFINITY}) {
            histogram.observe(value);
        }

        assertThat(histogram)
                .isInstanceOfSatisfying(
                        CountingMetrics.Distribution.class,
                        counts -> assertThat(counts.counts()).containsExactly(2, 2, 3));
        assertThat(metrics.histogram("seconds", "Seconds.", NONE, 1, 2)).isSameAs(histogram);
        assertThatThrownBy(() -> metrics.histogram("seconds", "Seconds.", NONE, 1, 3))
                .isInstanceOf(BackendException.class);
        assertThatThrownBy(() -> metrics.histogram("other", "Seconds.", NONE, 2, 1))
                .isInstanceOf(BackendException.class);
    }

    @Test
    void refusesNamesThatAreNotValidOrUsedOtherwise() {
        metrics.counter("used", "Used.", NONE);
        for (String name : List.of("", "1a", "a b", "nv_mine", "nereid_mine", "a\n", "\u00e4")) {
            assertRefused(name, NONE);
        }
        for (String label : List.of("", "1", "__a", "a-b", "a\n")) {
            assertRefused("fine", Map.of(label, "x"));
        }
        assertRefused("used", Map.of("more", "x"));
        assertThatThrownBy(() -> metrics.gauge("used", "Used.", NONE)).isInstanceOf(BackendException.class);
        assertThatThrownBy(() -> metrics.counter("used", "Otherwise.", NONE)).isInstanceOf(BackendException.class);
    }

    private void assertRefused(String name, Map<String, String> labels) {
        assertThatThrownBy(() -> metrics.counter(name, "Used.", labels))
                .as(name)
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
    }

    /** A server without traces and metrics must not fail the load of a model that has some. */
    @Test
    void contextsHaveMetricsAndTracesByDefault() {
        Tracing tracing = Tracing.none();
        try (Tracing.Span span = tracing.span(null, "work");
                Tracing.Span part = span.span("part")) {
            part.attribute("a", "b");
            part.event("c");
        }
        assertThat(tracing.traceparent(null)).isEmpty();
    }
}
