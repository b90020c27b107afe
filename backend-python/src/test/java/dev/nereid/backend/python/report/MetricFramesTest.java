package dev.nereid.backend.python.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import dev.nereid.backend.python.frame.FrameType;
import dev.nereid.backend.python.frame.FrameWriter;
import dev.nereid.testkit.FakeBackendContext;
import java.nio.file.Path;
import java.util.Map;
import java.util.function.Consumer;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class MetricFramesTest {
    private static final int COUNTER = 0;
    private static final int GAUGE = 1;
    private static final int HISTOGRAM = 2;

    private final FakeBackendContext context = new FakeBackendContext(Map.of(), Path.of("."), 1);
    private final MetricFamilies families = new MetricFamilies(context.metrics());
    private final SentFrames sent = new SentFrames();
    private final MetricFrames metrics = new MetricFrames(families, sent);

    private static FrameReader frame(int operation, long id, Consumer<FrameWriter> body) {
        return SentFrames.frame(FrameType.METRIC, operation, id, body);
    }

    /** Creates a family, and returns the error of the reply. */
    private String family(long id, int kind, String name) {
        return family(metrics, sent, id, kind, name);
    }

    private static String family(MetricFrames metrics, SentFrames sent, long id, int kind, String name) {
        metrics.onMetric(frame(1, id, body -> body.u32(kind).text(name).text("description")));
        return sent.reply(id);
    }

    /** Creates a metric, and returns the error of the reply. */
    private String metric(long id, long family, Map<String, String> labels, double... buckets) {
        return metric(metrics, sent, id, family, labels, buckets);
    }

    private static String metric(
            MetricFrames metrics,
            SentFrames sent,
            long id,
            long family,
            Map<String, String> labels,
            double... buckets) {
        metrics.onMetric(frame(3, id, body -> {
            body.u64(family).map(labels).u32(buckets.length);
            for (double bucket : buckets) {
                body.f64(bucket);
            }
        }));
        return sent.reply(id);
    }

    private void change(int operation, long id, double value) {
        metrics.onMetric(frame(operation, id, body -> body.f64(value)));
    }

    private void drop(int operation, long id) {
        metrics.onMetric(frame(operation, id, _ -> {}));
    }

    private void ask(long question, long id) {
        metrics.onMetric(frame(8, question, body -> body.u64(id)));
    }

    private double value(long id) {
        ask(1000, id);
        return sent.value(1000);
    }

    @Test
    void countsAndReturnsTheValue() {
        assertThat(family(1, COUNTER, "requests_total")).isEmpty();
        assertThat(metric(2, 1, Map.of("model", "m"))).isEmpty();
        change(5, 2, 2);
        change(5, 2, 0.5);

        assertThat(value(2)).isEqualTo(2.5);
        assertThat(context.metrics()
                        .counter("requests_total", "", Map.of("model", "m"))
                        .value())
                .isEqualTo(2.5);
    }

    @Test
    void setsGauges() {
        assertThat(family(1, GAUGE, "depth")).isEmpty();
        assertThat(metric(2, 1, Map.of())).isEmpty();
        change(6, 2, 9);
        change(5, 2, -2);

        assertThat(value(2)).isEqualTo(7);
    }

    @Test
    void observesHistograms() {
        assertThat(family(1, HISTOGRAM, "seconds")).isEmpty();
        assertThat(metric(2, 1, Map.of(), 0.1, 1)).isEmpty();
        assertThat(metric(3, 1, Map.of("a", "none"))).isEmpty();
        change(7, 2, 0.5);
        change(7, 2, 5);

        var histogram = context.metrics().histogram("seconds", "", Map.of(), 0.1, 1);
        assertThat(histogram.count()).isEqualTo(2);
        assertThat(histogram.sum()).isEqualTo(5.5);
    }

    @Test
    void metricsOfTheSameNameAndLabelsAreOne() {
        SentFrames sentToOther = new SentFrames();
        MetricFrames other = new MetricFrames(families, sentToOther);
        family(1, COUNTER, "a");
        metric(2, 1, Map.of("x", "y"));
        metric(3, 1, Map.of("x", "z"));
        assertThat(family(other, sentToOther, 1, COUNTER, "a")).isEmpty();
        assertThat(metric(other, sentToOther, 2, 1, Map.of("x", "y"))).isEmpty();
        change(5, 2, 1);
        other.onMetric(frame(5, 2, body -> body.f64(2)));

        assertThat(value(2)).isEqualTo(3);
        assertThat(value(3)).isZero();
        other.close();
        assertThat(value(2)).isEqualTo(3);
        assertThat(families.size()).isEqualTo(1);
    }

    @Test
    void aHistogramThatExistsKeepsItsBuckets() {
        family(1, HISTOGRAM, "h");
        metric(2, 1, Map.of(), 1, 2);

        assertThat(metric(3, 1, Map.of(), 5, 6)).isEmpty();
        change(7, 3, 1);

        var histogram = context.metrics().histogram("h", "", Map.of(), 1, 2);
        assertThat(histogram.count()).isEqualTo(1);
        assertThat(context.logger().lines()).isEmpty();
    }

    @Test
    void refusesAnotherKindWhileTheNameIsInUse() {
        family(1, COUNTER, "a");
        assertThat(family(2, GAUGE, "a")).isEqualTo("Family name already exists with different type");
        assertThat(family(3, COUNTER, "a")).isEmpty();
        drop(2, 1);
        assertThat(family(4, GAUGE, "a")).isEqualTo("Family name already exists with different type");
        drop(2, 3);

        assertThat(family(5, GAUGE, "a")).isEmpty();
        assertThat(metric(6, 5, Map.of())).isEmpty();
        change(6, 6, 4);
        assertThat(value(6)).isEqualTo(4);
    }

    @ParameterizedTest
    @CsvSource({"''", "0a", "a-b", "größe", "'a b'", "nv_a", "nereid_a"})
    void refusesNames(String name) {
        assertThat(family(1, COUNTER, name)).startsWith("Invalid metric name '" + name + "' (expected: ");
        assertThat(families.size()).isZero();
    }

    @ParameterizedTest
    @CsvSource({"''", "0a", "a:b", "__a", "le"})
    void refusesLabels(String label) {
        family(1, HISTOGRAM, "a");
        assertThat(metric(2, 1, Map.of(label, "x"), 1)).startsWith("Invalid label name '" + label + "' (expected: ");
    }

    @Test
    void refusesBuckets() {
        family(1, HISTOGRAM, "a");
        assertThat(metric(2, 1, Map.of(), 1, 1)).isEqualTo("Bucket boundaries must be strictly ascending.");
        assertThat(metric(2, 1, Map.of(), 2, 1)).isEqualTo("Bucket boundaries must be strictly ascending.");
        assertThat(metric(2, 1, Map.of(), Double.NaN)).isEqualTo("Bucket boundaries must be strictly ascending.");
        assertThat(metric(2, 1, Map.of(), 1, Double.POSITIVE_INFINITY)).isEmpty();
    }

    @Test
    void removesMetricsWithTheirFamily() {
        family(1, COUNTER, "a");
        metric(2, 1, Map.of());
        change(5, 2, 3);
        drop(2, 1);

        assertThat(families.size()).isZero();
        change(5, 2, 1); // of another thread, or of a forked process
        drop(4, 2);
        ask(9, 2);
        assertThat(sent.reply(9))
                .startsWith("Invalid metric operation as the corresponding 'MetricFamily' has been deleted.");
        assertThat(metric(10, 1, Map.of())).startsWith("Invalid metric operation");
        drop(2, 1);

        family(11, COUNTER, "a");
        metric(12, 11, Map.of());
        assertThat(value(12)).isZero();
    }

    @Test
    void removesOneMetric() {
        family(1, COUNTER, "a");
        metric(2, 1, Map.of());
        change(5, 2, 3);
        drop(4, 2);
        metric(3, 1, Map.of());

        assertThat(value(3)).isZero();
    }

    @Test
    void removesAllAtTheEnd() {
        family(1, COUNTER, "a");
        metric(2, 1, Map.of());
        family(3, HISTOGRAM, "b");
        metric(4, 3, Map.of(), 1);
        metrics.close();
        metrics.close();

        assertThat(families.size()).isZero();
        change(5, 2, 1);
        family(5, GAUGE, "a");
        assertThat(families.size()).isZero();
        assertThat(context.logger().lines()).isEmpty();
    }

    @Test
    void boundsTheNumberOfMetrics() {
        family(1, GAUGE, "a");
        for (int i = 0; i < MetricFrames.MAX_METRICS; i++) {
            assertThat(metric(10 + i, 1, Map.of("i", "" + i))).isEmpty();
        }
        assertThat(metric(2, 1, Map.of())).isEqualTo("The process has 10000 metrics (expected: fewer)");
        drop(4, 10);
        assertThat(metric(2, 1, Map.of())).isEmpty();
    }

    @Test
    void boundsTheirSize() {
        family(1, GAUGE, "a");
        String large = "x".repeat(65_000);
        int count = 0;
        while (metric(10 + count, 1, Map.of("i", count + large)).isEmpty()) {
            count++;
        }
        assertThat(count).isEqualTo(MetricFrames.MAX_BYTES / 65_050);
        drop(2, 1);
        family(2, GAUGE, "a");
        assertThat(metric(3, 2, Map.of("i", large))).isEmpty();
    }

    @Test
    void refusesMalformedFrames() {
        family(1, COUNTER, "a");
        metric(2, 1, Map.of());
        family(3, HISTOGRAM, "h");
        metric(4, 3, Map.of());

        assertRefused(frame(0, 9, _ -> {}), "operation of a metric: 0 (expected: 1 to 8)");
        assertRefused(frame(9, 9, _ -> {}), "operation of a metric: 9 (expected: 1 to 8)");
        assertRefused(frame(6, 2, body -> body.f64(1)), "operation of a metric: 6 (expected: one that its kind has)");
        assertRefused(frame(5, 4, body -> body.f64(1)), "operation of a metric: 5 (expected: one that its kind has)");
        assertRefused(frame(8, 9, body -> body.u64(4)), "operation of a metric: 8 (expected: one that its kind has)");
        assertRefused(frame(5, 2, _ -> {}), "value of a metric: 8 bytes");
        assertRefused(frame(1, 9, body -> body.u32(3).text("x").text("")), "kind of a family: 3 (expected: 0 to 2)");
        assertRefused(frame(1, 1, body -> body.u32(0).text("x").text("")), "id of a metric: 1 (expected:");
        assertRefused(
                frame(3, 2, body -> body.u64(1).map(Map.of()).u32(0)), "id of a metric: 2 (expected: one that is not");
        assertRefused(frame(3, 9, body -> body.u64(1).map(Map.of()).u32(9)), "buckets of a metric: 9 entries");
        assertRefused(
                frame(3, 9, body -> body.u64(1).map(Map.of()).u32(1).f64(1)),
                "buckets of a metric: 1 (expected: none of a counter)");
        assertRefused(frame(3, 9, body -> body.u64(1).u32(1 << 30)), "labels of a metric: 1073741824 entries");
        assertRefused(
                frame(1, 9, body -> body.u32(0).text("x").text("y".repeat(70_000))),
                "metric: 70016 bytes (expected: at most");
        assertThat(sent.isEmpty()).isTrue();
    }

    private void assertRefused(FrameReader frame, String message) {
        assertThatThrownBy(() -> metrics.onMetric(frame))
                .isInstanceOf(FrameException.class)
                .hasMessageStartingWith(message);
    }
}
