package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ResourceBundle;
import org.junit.jupiter.api.Test;

final class CountingMetricsTest {
    private static final Map<String, String> NONE = Map.of();

    private final List<String> log = new ArrayList<>();
    private final Metrics metrics = Metrics.unpublished(new ListLog(log));

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
        assertThat(log).isEmpty();
        counter.increment(-1);
        counter.increment(Double.NaN);
        assertThat(((CountingMetrics.Count) counter).value()).isEqualTo(2.5);
        assertThat(log).containsExactly("WARNING metric 'tokens': a negative amount is ignored (expected: 0 or more)");
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
        assertThat(log).isEmpty();
        metrics.histogram("seconds", "Seconds.", NONE, 1, 3).observe(1);
        metrics.histogram("other", "Seconds.", NONE, 2, 1).observe(1);
        assertThat(log)
                .containsExactly(
                        "WARNING metric 'seconds' counts nothing: buckets [1.0, 3.0] (expected: [1.0, 2.0], as it was"
                                + " created)",
                        "WARNING metric 'other' counts nothing: buckets [2.0, 1.0] (expected: numbers in ascending"
                                + " order)");
    }

    @Test
    void countsNothingForNamesThatAreNotValidOrUsedOtherwise() {
        metrics.counter("used", "Used.", NONE);
        for (String name : List.of("", "1a", "a b", "nv_mine", "nereid_mine", "a\n", "\u00e4")) {
            assertRefused(name, NONE);
        }
        for (String label : List.of("", "1", "__a", "a-b", "a\n")) {
            assertRefused("fine", Map.of(label, "x"));
        }
        assertRefused("used", Map.of("more", "x"));
        log.clear();
        metrics.gauge("used", "Used.", NONE).set(1);
        metrics.counter("used", "Otherwise.", NONE).increment(1);
        assertThat(log)
                .hasSize(2)
                .allMatch(line -> line.startsWith("WARNING metric 'used' counts nothing: Family[")
                        && line.endsWith("as it was created)"));
    }

    private void assertRefused(String name, Map<String, String> labels) {
        log.clear();
        for (int i = 0; i < 3; i++) {
            metrics.counter(name, "Used.", labels).increment(1);
        }
        assertThat(log)
                .as("logged once")
                .singleElement()
                .asString()
                .startsWith("WARNING metric '")
                .contains(" counts nothing: ")
                .doesNotContain("\n");
    }

    @Test
    void remembersFewOfManyWrongNames() {
        for (int i = 0; i < 10_000; i++) {
            metrics.counter(i + "x".repeat(1000), "Any.", NONE).increment(1);
        }

        assertThat(log).hasSize(CountingMetrics.MAX_MISTAKES).allMatch(line -> line.length() < 300);
    }

    @Test
    void throwsForNullAlone() {
        assertThatThrownBy(() -> metrics.counter(null, "Any.", NONE)).isInstanceOf(NullPointerException.class);
        assertThatThrownBy(() -> metrics.gauge("a", null, NONE)).isInstanceOf(NullPointerException.class);
        assertThatThrownBy(() -> metrics.gauge("a", "Any.", null)).isInstanceOf(NullPointerException.class);
        assertThat(metrics.counter("a", "Any.", NONE)).isInstanceOf(CountingMetrics.Count.class);
    }

    /** Records lines with their levels. */
    private record ListLog(List<String> lines) implements System.Logger {
        @Override
        public String getName() {
            return "list";
        }

        @Override
        public boolean isLoggable(Level level) {
            return true;
        }

        @Override
        public void log(Level level, ResourceBundle bundle, String message, Throwable thrown) {
            lines.add(level + " " + message);
        }

        @Override
        public void log(Level level, ResourceBundle bundle, String format, Object... values) {
            lines.add(level + " " + format);
        }
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
