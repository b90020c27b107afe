package dev.nereid.benchmarks.load;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.util.stream.LongStream;
import org.assertj.core.data.Percentage;
import org.junit.jupiter.api.Test;

final class LatencyHistogramTest {
    private final LatencyHistogram histogram = new LatencyHistogram();

    @Test
    void reportsPercentilesOfAThousandDifferentLatencies() {
        LongStream.rangeClosed(1, 1_000).forEach(micros -> histogram.record(micros * 1_000));

        assertThat(histogram.total()).isEqualTo(1_000);
        assertThat(histogram.percentileMicros(50)).isCloseTo(500, Percentage.withPercentage(1.6));
        assertThat(histogram.percentileMicros(99)).isCloseTo(990, Percentage.withPercentage(1.6));
        assertThat(histogram.percentileMicros(100)).isCloseTo(1_000, Percentage.withPercentage(1.6));
    }

    @Test
    void keepsItsPrecisionAtEverySize() {
        for (long nanos = 100; nanos < Long.MAX_VALUE / 3; nanos *= 3) {
            histogram.clear();
            histogram.record(nanos);

            assertThat(histogram.percentileMicros(50) * 1_000)
                    .isCloseTo((double) nanos, Percentage.withPercentage(1.6));
        }
    }

    @Test
    void takesTheShortestAndTheLongestLatency() {
        histogram.record(0);
        histogram.record(Long.MAX_VALUE);

        assertThat(histogram.percentileMicros(50)).isCloseTo(0, within(0.001));
        assertThat(histogram.total()).isEqualTo(2);
    }

    @Test
    void addsWhatAnotherOneCounted() {
        LatencyHistogram other = new LatencyHistogram();
        other.record(1_000_000);
        histogram.record(1_000);
        histogram.record(1_000);

        histogram.add(other);

        assertThat(histogram.total()).isEqualTo(3);
        assertThat(histogram.percentileMicros(50)).isCloseTo(1, Percentage.withPercentage(1.6));
        assertThat(histogram.percentileMicros(99)).isCloseTo(1_000, Percentage.withPercentage(1.6));
    }

    @Test
    void reportsNothingWhenItCountedNothing() {
        assertThat(histogram.percentileMicros(99)).isZero();
    }
}
