package dev.nereid.spi;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.ResourceBundle;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
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

        assertThat(counter.value()).isEqualTo(2.5);
        assertThat(log).isEmpty();
        counter.increment(-1);
        counter.increment(Double.NaN);
        assertThat(counter.value()).isEqualTo(2.5);
        assertThat(log).containsExactly("WARNING metric 'tokens': a negative amount is ignored (expected: 0 or more)");
    }

    @Test
    void gaugesRiseAndFall() {
        Metrics.Gauge gauge = metrics.gauge("depth", "Depth.", NONE);
        gauge.set(5);
        gauge.increment(-7.5);

        assertThat(gauge.value()).isEqualTo(-2.5);
    }

    @Test
    void histogramsCountByBucket() {
        Metrics.Histogram histogram = metrics.histogram("seconds", "Seconds.", NONE, 1, 2);
        for (double value : new double[] {0, 1, 1.5, 2, 3}) {
            histogram.observe(value);
        }
        assertThat(histogram.count()).isEqualTo(5);
        assertThat(histogram.sum()).isEqualTo(7.5);
        histogram.observe(Double.NaN);
        histogram.observe(Double.POSITIVE_INFINITY);

        assertThat(histogram)
                .isInstanceOfSatisfying(
                        CountingMetrics.Distribution.class,
                        counts -> assertThat(counts.counts()).containsExactly(2, 2, 3));
        assertThat(metrics.histogram("seconds", "Seconds.", NONE, 1, 2).count()).isEqualTo(7);
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
        log.clear();
        Metrics.Gauge gauge = metrics.gauge("used", "Used.", NONE);
        gauge.set(1);
        assertThat(gauge.value()).isZero();
        assertThat(log)
                .containsExactly(
                        "WARNING metric 'used' counts nothing: a gauge (expected: a counter, as it was created)");
    }

    /** As custom metrics of Python models on the reference server. */
    @Test
    void namesAreSharedWhateverTheDescriptionAndTheLabels() {
        metrics.counter("used", "Used.", NONE).increment(1);
        Metrics.Counter same = metrics.counter("used", "Otherwise.", NONE);
        same.increment(2);
        Metrics.Counter other = metrics.counter("used", "Otherwise.", Map.of("more", "x"));
        other.increment(5);

        assertThat(same.value()).isEqualTo(3);
        assertThat(other.value()).isEqualTo(5);
        assertThat(log).isEmpty();
    }

    @Test
    void metricsAreRemovedWithTheirLastUser() {
        Metrics.Counter one = metrics.counter("tokens", "Tokens.", NONE);
        Metrics.Counter other = metrics.counter("tokens", "Tokens.", NONE);
        one.increment(3);
        one.remove();
        one.remove();
        one.increment(1);

        assertThat(other.value()).isEqualTo(3);
        assertThat(metrics.counter("tokens", "Tokens.", NONE).value()).isEqualTo(3);
        other.remove();
        assertThat(metrics.counter("tokens", "Tokens.", NONE).value())
                .as("used by the counter that was not kept")
                .isEqualTo(3);
    }

    @Test
    void namesAreFreeWithTheirLastMetric() {
        Metrics.Counter one = metrics.counter("depth", "Depth.", Map.of("kind", "a"));
        Metrics.Counter other = metrics.counter("depth", "Depth.", Map.of("kind", "b"));
        one.increment(1);
        one.remove();
        assertThat(metrics.gauge("depth", "Depth.", NONE).value()).isZero();
        assertThat(log).hasSize(1);
        Metrics.Counter again = metrics.counter("depth", "Depth.", Map.of("kind", "a"));
        assertThat(again.value()).as("created again").isZero();
        again.remove();
        other.remove();

        Metrics.Gauge gauge = metrics.gauge("depth", "Depth.", NONE);
        gauge.set(4);
        assertThat(gauge.value()).isEqualTo(4);
        gauge.remove();
        gauge.set(5);
        gauge.increment(1);
        Metrics.Histogram histogram = metrics.histogram("depth", "Depth.", NONE, 1);
        histogram.observe(1);
        histogram.remove();
        histogram.observe(1);
        assertThat(histogram.count()).isEqualTo(1);
        assertThat(metrics.histogram("depth", "Depth.", NONE).count()).isZero();
        assertThat(log).hasSize(1);
    }

    /** A metric that is removed and created at the same time is one of both: nothing is counted where none can see it. */
    @Test
    void removalsAndCreationsAtTheSameTimeLoseNothing() throws Exception {
        int threads = 4;
        try (ExecutorService executor = Executors.newFixedThreadPool(threads)) {
            List<Future<?>> all = new ArrayList<>();
            for (int thread = 0; thread < threads; thread++) {
                all.add(executor.submit(() -> {
                    for (int i = 0; i < 5_000; i++) {
                        Metrics.Counter counter = metrics.counter("shared", "Shared.", NONE);
                        counter.increment(1);
                        assertThat(counter.value()).isPositive();
                        assertThat(metrics.counter("shared", "Shared.", NONE)).satisfies(same -> {
                            assertThat(same.value()).isPositive();
                            same.remove();
                        });
                        counter.remove();
                    }
                }));
            }
            for (Future<?> one : all) {
                one.get();
            }
        }
        assertThat(metrics.gauge("shared", "Shared.", NONE).value()).isZero();
        assertThat(log).as("the name is free").isEmpty();
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
        Metrics.Counter counter = metrics.counter("a", "Any.", NONE);
        counter.increment(1);
        assertThat(counter.value()).isEqualTo(1);
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
