package dev.nereid.scheduler.statistics;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.ComputeTimings;
import dev.nereid.api.statistics.ExecutionStatistics;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.api.statistics.GpuCounters;
import dev.nereid.api.statistics.InferenceTimings;
import dev.nereid.api.statistics.MicrosCounters;
import dev.nereid.api.statistics.ResponseStatistics;
import dev.nereid.api.statistics.Timing;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ResponseReport;
import java.time.Instant;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

final class ModelMeterTest {
    private final ModelMeter meter = new ModelMeter(InstantSource.fixed(Instant.ofEpochMilli(77)));

    @Test
    void beginsAtZero() {
        assertThat(meter.read())
                .isEqualTo(new MeterReading(
                        new ExecutionStatistics(0, 0, 0, List.of()),
                        new InferenceTimings(
                                Timing.NONE,
                                Timing.NONE,
                                Timing.NONE,
                                new ComputeTimings(Timing.NONE, Timing.NONE, Timing.NONE),
                                Timing.NONE,
                                Timing.NONE),
                        List.of(),
                        Map.of(),
                        new MicrosCounters(0, 0, 0, 0, 0, 0, 0),
                        0,
                        List.of()));
    }

    /** Two requests of 1 and 3 items that arrived at 1 and 2 µs, and a third of 2 items that failed. */
    @Test
    void addsAnExecutionAsAWhole() {
        ExecutionTally tally = new ExecutionTally(10_000, 11_500, 20_000, 22_999);
        tally.executed(6);
        tally.succeeded(1, 1_000, 1_200);
        tally.succeeded(3, 2_000, 2_200);
        tally.failed(FailureReason.BACKEND, 3_000);

        meter.record(tally);

        MeterReading read = meter.read();
        InferenceTimings times = read.inferences();
        assertThat(read.executions().lastInferenceMillis()).isEqualTo(77);
        assertThat(read.executions().inferenceCount()).isEqualTo(4);
        assertThat(read.executions().executionCount()).isEqualTo(1);
        assertThat(times.success()).isEqualTo(new Timing(2, 21_999 + 20_999));
        assertThat(times.fail()).isEqualTo(new Timing(1, 19_999));
        assertThat(times.queue()).isEqualTo(new Timing(2, 8_800 + 7_800));
        assertThat(times.compute().input()).isEqualTo(new Timing(2, 2 * 1_500));
        assertThat(times.compute().infer()).isEqualTo(new Timing(2, 2 * 8_500));
        assertThat(times.compute().output()).isEqualTo(new Timing(2, 2 * 2_999));
        assertThat(read.executions().batches())
                .containsExactly(new BatchStatistics(
                        6, new ComputeTimings(new Timing(1, 1_500), new Timing(1, 8_500), new Timing(1, 2_999))));
        assertThat(read.failures()).containsExactly(Map.entry(FailureReason.BACKEND, 1L));
        assertThat(read.micros())
                .as("cut for each request, before they are added")
                .isEqualTo(new MicrosCounters(21 + 20, 8 + 7, 2, 16, 4, 0, 0));
    }

    @Test
    void countsThePartOfEachGpu() {
        meter.addInstanceOn(1);
        for (Device device : List.of(new Device(Device.Kind.GPU, 3), Device.CPU, new Device(Device.Kind.GPU, 3))) {
            ExecutionTally tally = new ExecutionTally(10_000, 11_500, 20_000, 22_999);
            tally.ranOn(device);
            tally.executed(6);
            tally.succeeded(1, 1_000, 1_200);
            tally.succeeded(3, 2_000, 2_200);
            tally.failed(FailureReason.BACKEND, 3_000);
            meter.record(tally);
        }
        meter.hit(1_000, 1_000, 1_000);

        assertThat(meter.read().gpus())
                .containsExactly(
                        new GpuCounters(1, 0, 0, 0, new MicrosCounters(0, 0, 0, 0, 0, 0, 0)),
                        new GpuCounters(3, 4, 8, 2, new MicrosCounters(82, 30, 4, 32, 8, 0, 0)));
        assertThat(meter.read().executions().executionCount()).isEqualTo(3);
        assertThat(meter.read().inferences().success().count()).isEqualTo(7);
    }

    @ParameterizedTest
    @CsvSource({
        "100, 200, 900, 1000,  100, 700, 100",
        "100, 100, 1000, 1000, 0, 900, 0",
        // Marks that come too early, too late, or in the wrong order.
        "100, 50, 2000, 1000,  0, 900, 0",
        "100, 600, 300, 1000,  500, 0, 400",
        "100, 2000, 2000, 1000, 900, 0, 0",
    })
    void dividesAnExecution(long start, long inputs, long outputs, long end, long input, long infer, long output) {
        ExecutionTally tally = new ExecutionTally(start, inputs, outputs, end);
        tally.executed(1);

        meter.record(tally);

        assertThat(meter.read().executions().batches())
                .containsExactly(new BatchStatistics(
                        1, new ComputeTimings(new Timing(1, input), new Timing(1, infer), new Timing(1, output))));
    }

    @Test
    void keepsBatchSizesApartAndInOrder() {
        for (int size : new int[] {4, 1, 4}) {
            ExecutionTally tally = new ExecutionTally(0, 0, 10, 10);
            tally.executed(size);
            meter.record(tally);
        }

        assertThat(meter.read().executions().executionCount()).isEqualTo(3);
        assertThat(meter.read().executions().batches())
                .containsExactly(
                        new BatchStatistics(
                                1, new ComputeTimings(new Timing(1, 0), new Timing(1, 10), new Timing(1, 0))),
                        new BatchStatistics(
                                4, new ComputeTimings(new Timing(2, 0), new Timing(2, 20), new Timing(2, 0))));
    }

    /** The backend threw: no execution is counted, and its requests have failed. */
    @Test
    void countsNoExecutionThatWasNotReported() {
        ExecutionTally tally = new ExecutionTally(0, 0, 10, 10);
        tally.failed(FailureReason.BACKEND, 0);
        tally.failed(FailureReason.CANCELED, 0);

        meter.record(tally);

        assertThat(meter.read().executions().executionCount()).isZero();
        assertThat(meter.read().executions().lastInferenceMillis()).isZero();
        assertThat(meter.read().executions().batches()).isEmpty();
        assertThat(meter.read().failures()).isEqualTo(Map.of(FailureReason.BACKEND, 1L, FailureReason.CANCELED, 1L));
    }

    @Test
    void countsFailuresOutsideOfExecutions() {
        meter.failed(FailureReason.REJECTED, 5);
        meter.failed(FailureReason.REJECTED, 6);

        assertThat(meter.read().inferences().fail()).isEqualTo(new Timing(2, 11));
        assertThat(meter.read().failures()).isEqualTo(Map.of(FailureReason.REJECTED, 2L));
    }

    @Test
    void countsReportedResponsesByTheirPlaces() {
        meter.responded(1, ResponseReport.of(100, 130, 200));
        meter.responded(0, ResponseReport.of(100, 110, 150));
        meter.responded(0, ResponseReport.of(200, 200, 300));

        assertThat(meter.read().responses())
                .containsExactly(
                        new ResponseStatistics(
                                new Timing(2, 10),
                                new Timing(2, 140),
                                new Timing(2, 150),
                                Timing.NONE,
                                Timing.NONE,
                                Timing.NONE),
                        new ResponseStatistics(
                                new Timing(1, 30),
                                new Timing(1, 70),
                                new Timing(1, 100),
                                Timing.NONE,
                                Timing.NONE,
                                Timing.NONE));
        assertThat(meter.read().inferences().success())
                .as("apart from requests")
                .isEqualTo(Timing.NONE);
    }

    @Test
    void tellsFailedEmptyAndCancelledResponsesApart() {
        meter.responded(0, ResponseReport.failed(0, 5, ErrorCode.INTERNAL));
        meter.responded(0, new ResponseReport(0, OptionalLong.of(20), 50, Optional.of(ErrorCode.INTERNAL)));
        meter.responded(0, ResponseReport.empty(0, 700));
        meter.responded(0, ResponseReport.failed(0, 9_000, ErrorCode.CANCELLED));

        assertThat(meter.read().responses())
                .containsExactly(new ResponseStatistics(
                        new Timing(3, 725),
                        new Timing(1, 30),
                        Timing.NONE,
                        new Timing(2, 55),
                        new Timing(1, 700),
                        new Timing(1, 9_000)));
    }

    @ParameterizedTest
    @CsvSource({
        "2, 1, 3, Response start cannot happen after compute output start",
        "1, 3, 2, Compute output start cannot happen after response end",
        "2, , 1, Response start cannot happen after response end",
    })
    void refusesTimesOutOfOrder(long start, Long output, long end, String text) {
        ResponseReport report = new ResponseReport(
                start, output == null ? OptionalLong.empty() : OptionalLong.of(output), end, Optional.empty());

        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> ModelMeter.check(report))
                .withMessage(text)
                .satisfies(error -> assertThat(error.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
    }

    @Test
    void countsHitsAsSuccessesThatComputedNothing() {
        meter.hit(2_000, 3_000, 6_000);
        meter.missed(1_000);
        meter.inserted(1_000, 3_000);

        InferenceTimings times = meter.read().inferences();
        assertThat(times.success()).isEqualTo(new Timing(1, 10_000));
        assertThat(times.queue()).isEqualTo(new Timing(1, 2_000));
        assertThat(times.compute().infer()).isEqualTo(Timing.NONE);
        assertThat(times.cacheHit()).isEqualTo(new Timing(1, 3_000));
        assertThat(times.cacheMiss()).isEqualTo(new Timing(1, 4_000));
        assertThat(meter.read().executions().inferenceCount()).isZero();
        assertThat(meter.read().micros()).isEqualTo(new MicrosCounters(10, 2, 0, 0, 0, 3, 4));
    }
}
