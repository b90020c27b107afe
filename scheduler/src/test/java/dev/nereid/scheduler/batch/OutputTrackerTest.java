package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatCode;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.util.ArrayList;
import java.util.List;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class OutputTrackerTest {
    @AutoClose
    private final LeakCheckingMemory memory = new LeakCheckingMemory();

    private final ModelSettings model = ModelSettings.builder("m", 3)
            .maxBatchSize(8)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(3)))
            .output(TensorSpec.of("FREE", DataType.FP32, Shape.of(Shape.VARIABLE, 2)))
            .build();
    private final List<String> reports = new ArrayList<>();
    private final OutputTracker tracker = new OutputTracker(
            model,
            List.of(
                    new OutputSpec(0, model.outputs().get(0), true, false, null),
                    new OutputSpec(1, model.outputs().get(1), true, false, null)),
            (settings, output, configured, given, problem) -> reports.add(
                    settings.name() + " " + output.tensor().name() + " " + configured + " " + given + ": " + problem));

    @Test
    void reportsAnOutputThatDoesNotFitOnce() {
        tracker.checkShape(0, Shape.of(1, 7));
        tracker.checkShape(0, Shape.of(1, 7));
        tracker.checkShape(0, Shape.of(3));
        tracker.checkShape(1, Shape.of(1, 5, 3));

        assertThat(reports)
                .containsExactly(
                        "m OUT [-1,3] [1,7]: output does not fit the configuration",
                        "m FREE [-1,-1,2] [1,5,3]: output does not fit the configuration");
    }

    @Test
    void reportsAnotherTypeOnce() {
        tracker.checkType(0, DataType.FP32);
        tracker.checkType(0, DataType.FP64);
        tracker.checkType(0, DataType.INT8);
        tracker.checkType(1, DataType.BYTES);

        assertThat(reports)
                .containsExactly(
                        "m OUT FP32 FP64: output has another type than configured",
                        "m FREE FP32 BYTES: output has another type than configured");
    }

    @Test
    void reportsFewUnknownOutputsOnce() {
        for (int i = 0; i < 100; i++) {
            tracker.reportUnknown(OutputSpec.unknown("X" + i, DataType.INT8, Shape.of(2)));
            tracker.reportUnknown(OutputSpec.unknown("X0", DataType.INT8, Shape.of(2)));
        }

        assertThat(reports)
                .hasSize(16)
                .startsWith("m X0 nothing INT8 [2]: output dropped, which is not in the configuration");
    }

    @Test
    void wrongOutputsAreErrorsInTests() {
        OutputTracker strict = OutputTracker.strict(
                model, List.of(new OutputSpec(0, model.outputs().getFirst(), true, false, null)));
        for (int i = 0; i < 2; i++) {
            assertThatThrownBy(() -> strict.checkShape(0, Shape.of(1, 7)))
                    .isInstanceOf(BackendException.class)
                    .hasMessage("output 'OUT' of model 'm': [1,7] (expected: [-1,3]): output does not fit the"
                            + " configuration");
            assertThatThrownBy(() -> strict.checkType(0, DataType.INT8)).isInstanceOf(BackendException.class);
            assertThatThrownBy(() -> strict.reportUnknown(OutputSpec.unknown("X", DataType.INT8, Shape.of(2))))
                    .hasMessage("output 'X' of model 'm': not in the configuration (expected: one of [OUT])");
        }
        strict.checkShape(0, Shape.of(1, 3));
        strict.checkType(0, DataType.FP32);
    }

    @Test
    void aReportThatFailsFailsNothing() {
        OutputTracker broken = new OutputTracker(
                model,
                List.of(new OutputSpec(0, model.outputs().getFirst(), true, false, null)),
                (settings, output, configured, given, problem) -> {
                    throw new StackOverflowError("of a test");
                });

        assertThatCode(() -> broken.checkShape(0, Shape.of(7))).doesNotThrowAnyException();
    }

    @Test
    void saysNothingOfOutputsThatFit() {
        tracker.checkShape(0, Shape.of(5, 3));
        tracker.checkShape(1, Shape.of(5, 0, 2));
        tracker.checkShape(1, Shape.of(5, 77, 2));

        assertThat(reports).isEmpty();
    }

    @Test
    void reportsAMissingRequestedOutputOnce() {
        CheckedRequest request = Requests.to(model, memory).outputs("OUT").of(1);
        tracker.logMissing(0, request);
        tracker.logMissing(0, request);
        tracker.logMissing(1, request);
        tracker.checkShape(0, Shape.of(1, 7));
        request.releaseInputs();

        assertThat(reports)
                .containsExactly(
                        "m OUT [-1,3] nothing: output missing from a response",
                        "m OUT [-1,3] [1,7]: output does not fit the configuration");
    }

    @Test
    void remembersWhichRequestsNeedLargeOutputs() {
        CheckedRequest request =
                Requests.to(model, memory).floats("IN", Shape.of(1, 100), 0).of(1);

        tracker.recordAllocation(request, 256 << 10);
        assertThat(tracker.isLarge(Long.MAX_VALUE - 1)).isFalse();

        tracker.recordAllocation(request, (256 << 10) + 1);
        assertThat(tracker.isLarge(400)).isTrue();
        assertThat(tracker.isLarge(399)).isFalse();
        request.releaseInputs();
    }
}
