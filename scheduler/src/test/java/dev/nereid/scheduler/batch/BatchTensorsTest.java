package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.Test;

/** Tests how inputs are joined and outputs are split. */
final class BatchTensorsTest {
    private static final Shape VARIABLE = Shape.of(Shape.VARIABLE);

    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("MORE", DataType.FP32, VARIABLE))
            .build();

    @Test
    void givesASingleRequestItsOwnTensors() {
        try (Execution execution = new Execution(model, batch -> {
            Tensor in = batch.gather("IN");
            assertThat(batch.requests().getFirst().input("IN")).containsSame(in);
            assertThat(batch.size()).isEqualTo(3);
            assertThat(batch.inputs()).containsExactly("IN");
            assertThat(batch.requestedOutputs()).containsExactly("OUT", "MORE");
            batch.put("OUT", in);
        })) {
            CheckedRequest checked =
                    execution.request().floats("IN", Shape.of(3, 2), 1).of(3);
            RecordingObserver observer = execution.submit(checked);

            execution.run();

            assertThat(observer.output("OUT").data())
                    .isEqualTo(checked.inputs().getFirst().tensor().data());
            assertThat(execution.memory.buffersInUse()).isEqualTo(1);
        }
    }

    @Test
    void namesGatheredInputs() {
        ModelSettings derived = ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .batchInput(
                        new BatchInput(BatchInput.Kind.ELEMENT_COUNT, List.of("COUNT", "AGAIN"), DataType.INT32, "IN"))
                .build();
        try (Execution execution = new Execution(derived, batch -> {
            assertThat(batch.gather("IN").name()).contains("IN");
            assertThat(batch.gather("COUNT").name()).contains("COUNT");
            assertThat(batch.gather("AGAIN").name()).contains("AGAIN");
        })) {
            execution.submit(execution.request().floats("IN", Shape.of(1, 2), 1).of(1));
            execution.submit(execution.request().floats("IN", Shape.of(2, 2), 5).of(2));

            execution.run();
        }
    }

    @Test
    void keepsGatheredMemoryForOutputsThatLieInIt() {
        try (Execution execution = new Execution(model, batch -> batch.put("OUT", batch.gather("IN")))) {
            RecordingObserver a = execution.submit(
                    execution.request().floats("IN", Shape.of(1, 2), 1).of(1));
            RecordingObserver b = execution.submit(
                    execution.request().floats("IN", Shape.of(2, 2), 5).of(2));

            execution.run();

            assertThat(a.floats("OUT")).containsExactly(1, 2);
            a.close();
            assertThat(b.floats("OUT")).containsExactly(5, 6, 7, 8);
            assertThat(b.output("OUT").shape()).isEqualTo(Shape.of(2, 2));
        }
    }

    @Test
    void runsTheReleaseOfABatchOutputOnceAfterTheLastResponseWasClosed() {
        AtomicInteger released = new AtomicInteger();
        try (Execution execution = new Execution(model, batch -> {
            MemorySegment data = Arena.ofAuto().allocate(16L * batch.size(), 8);
            batch.put("MORE", Tensor.of(DataType.FP32, Shape.of(batch.size(), 4), data), released::incrementAndGet);
        })) {
            Execution.submit(execution, 1, 2, 1);

            execution.run();

            assertThat(released).hasValue(0);
            execution.observers.get(2).close();
            execution.observers.get(0).close();
            execution.observers.get(0).close();
            assertThat(released).hasValue(0);
            execution.observers.get(1).close();
            assertThat(released).hasValue(1);
        }
    }

    @Test
    void returnsRequestedOutputsInTheOrderOfTheConfiguration() {
        try (Execution execution = new Execution(model, batch -> {
            batch.allocate("MORE", DataType.FP32, Shape.of(batch.size(), 1));
            batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 2));
        })) {
            RecordingObserver all = execution.submit(
                    execution.request().floats("IN", Shape.of(1, 2), 1).of(1));
            RecordingObserver more = execution.submit(execution
                    .request()
                    .outputs("MORE")
                    .floats("IN", Shape.of(1, 2), 1)
                    .of(1));

            execution.run();

            assertThat(names(all)).containsExactly("OUT", "MORE");
            assertThat(names(more)).containsExactly("MORE");
        }
    }

    @Test
    void returnsRequestedOutputs() {
        try (Execution execution = new Execution(model, batch -> {
            assertThat(batch.requestedOutputs()).containsExactly("MORE");
            assertThat(batch.requests().getFirst().requestedOutputs()).containsExactly("MORE");
        })) {
            CheckedRequest checked = execution
                    .request()
                    .outputs("MORE")
                    .floats("IN", Shape.of(1, 2), 1)
                    .of(1);
            RecordingObserver observer = execution.submit(checked);

            execution.run();

            assertThat(observer.response().outputs()).isEmpty();
        }
    }

    @Test
    void splitsByteStringsByTheirFraming() {
        ModelSettings strings = ModelSettings.builder("s", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.BYTES, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.BYTES, Shape.of(2)))
                .build();
        try (Execution execution = new Execution(strings, batch -> {
            Tensor in = batch.gather("IN");
            batch.allocateBytes("OUT", in.shape(), in.byteSize()).data().copyFrom(in.data());
        })) {
            RecordingObserver a = execution.submit(
                    execution.request().strings("IN", Shape.of(1, 2), "", "ä").of(1));
            RecordingObserver b = execution.submit(execution
                    .request()
                    .strings("IN", Shape.of(2, 2), "one", "", "three", "x")
                    .of(2));

            execution.run();

            assertThat(a.output("OUT").strings()).containsExactly("", "ä");
            assertThat(b.output("OUT").strings()).containsExactly("one", "", "three", "x");
        }
    }

    @Test
    void reshapesOutputsForClients() {
        ModelSettings reshaped = ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("ONE", DataType.FP32, Shape.of(1)).withReshape(Shape.SCALAR))
                .output(TensorSpec.of("VAR", DataType.FP32, Shape.of(-1, 1, -1)).withReshape(Shape.of(1, -1, -1, 1)))
                .build();
        FakeInstance.Execution backend = batch -> {
            batch.allocate("ONE", DataType.FP32, Shape.of(batch.size()));
            batch.allocate("VAR", DataType.FP32, Shape.of(batch.size(), 1, 3, 2, 1));
        };
        try (Execution single = new Execution(reshaped, backend);
                Execution several = new Execution(reshaped, backend)) {
            Execution.submit(single, 2);
            Execution.submit(several, 2, 1);

            single.run();
            several.run();

            for (Execution execution : List.of(single, several)) {
                RecordingObserver first = execution.observers.getFirst();
                assertThat(first.output("ONE").shape()).isEqualTo(Shape.of(2, 1));
                assertThat(first.output("VAR").shape()).isEqualTo(Shape.of(2, 3, 1, 2));
            }
        }
    }

    @Test
    void failsOnlyWhatABackendFailsByItself() {
        try (Execution execution = new Execution(model, batch -> {
            FakeInstance.copy(batch);
            InferenceRequest second = batch.requests().get(1);
            second.fail(new BackendException(ErrorCode.INVALID_ARGUMENT, "no"));
            second.fail(new BackendException(ErrorCode.INVALID_ARGUMENT, "again"));
        })) {
            Execution.submit(execution, 1, 1, 2);

            execution.run();

            assertThat(execution.observers.get(0).floats("OUT")).containsExactly(0, 1);
            execution.observers.get(1).assertError(ErrorCode.INVALID_ARGUMENT, "no");
            assertThat(execution.observers.get(2).floats("OUT")).containsExactly(20, 21, 22, 23);
        }
    }

    @Test
    void givesParametersAndOutputsOfEachRequest() {
        try (Execution execution = new Execution(model, batch -> {
            for (InferenceRequest request : batch.requests()) {
                InferenceResponse response = request.response();
                assertThat(request.response()).isSameAs(response);
                response.parameter("id", 1);
                response.parameter("id", request.id());
                response.parameter("half", 0.5);
                response.parameter("flag", false);
                response.put("OUT", request.input("IN").orElseThrow());
                assertThatThrownBy(() -> response.parameter("triton_x", true))
                        .hasMessage("name: triton_x (expected: not to start with triton_)");
            }
        })) {
            Execution.submit(execution, 2, 1);

            execution.run();

            assertThat(execution.observers.get(0).response().parameters())
                    .isEqualTo(Map.of(
                            "id", new ParameterValue.Text("0"),
                            "half", new ParameterValue.Real(0.5),
                            "flag", new ParameterValue.Bool(false)));
            assertThat(execution.observers.get(1).floats("OUT")).containsExactly(10, 11);
        }
    }

    @Test
    void joinsRaggedInputsFlat() {
        ModelSettings ragged = ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.FP32, VARIABLE).with(TensorSpec.Trait.RAGGED))
                .build();
        FakeInstance.Execution backend = batch -> {
            Tensor flat = batch.gather("IN");
            assertThat(flat.shape()).isEqualTo(Shape.of(batch.requests().size() == 1 ? 6 : 9));
            assertThat(flat.data()
                            .getAtIndex(
                                    ValueLayout.JAVA_FLOAT_UNALIGNED,
                                    flat.shape().dim(0) - 1))
                    .isEqualTo(batch.requests().size() == 1 ? 5f : 12f);
        };
        try (Execution single = new Execution(ragged, backend);
                Execution several = new Execution(ragged, backend)) {
            single.submit(single.request().floats("IN", Shape.of(2, 3), 0).of(2));
            several.submit(several.request().floats("IN", Shape.of(2, 3), 0).of(2));
            several.submit(several.request().floats("IN", Shape.of(1, 3), 10).of(1));

            single.run();
            several.run();

            single.observers.forEach(RecordingObserver::response);
            several.observers.forEach(RecordingObserver::response);
        }
    }

    @Test
    void givesAShapeTensorOnce() {
        ModelSettings shaped = ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .input(TensorSpec.of("SHAPE", DataType.INT64, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR))
                .build();
        try (Execution execution = new Execution(shaped, batch -> {
            assertThat(batch.requests()).hasSize(2);
            assertThat(batch.gather("IN").shape()).isEqualTo(Shape.of(3, 2));
            assertThat(batch.gather("SHAPE").shape()).isEqualTo(Shape.of(2));
            assertThat(batch.gather("SHAPE").data().toArray(ValueLayout.JAVA_LONG_UNALIGNED))
                    .containsExactly(4, 5);
        })) {
            for (int items = 1; items <= 2; items++) {
                execution.submit(execution
                        .request()
                        .floats("IN", Shape.of(items, 2), 0)
                        .longs("SHAPE", Shape.of(2), 4, 5)
                        .of(items));
            }

            execution.run();

            execution.observers.forEach(RecordingObserver::response);
        }
    }

    @Test
    void carriesTheOptionalInputsThatAllRequestsGive() {
        ModelSettings optional = ModelSettings.builder("m", 1)
                .maxBatchSize(64)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .input(TensorSpec.of("A", DataType.FP32, Shape.of(2)).with(TensorSpec.Trait.OPTIONAL))
                .input(TensorSpec.of("B", DataType.FP32, Shape.of(2)).with(TensorSpec.Trait.OPTIONAL))
                .build();
        try (Execution execution = new Execution(optional, batch -> {
            assertThat(batch.requests()).hasSize(2);
            assertThat(batch.inputs()).containsExactly("IN", "B");
            assertThat(batch.gather("B").shape()).isEqualTo(Shape.of(3, 2));
        })) {
            for (int items = 1; items <= 2; items++) {
                execution.submit(execution
                        .request()
                        .floats("IN", Shape.of(items, 2), 0)
                        .floats("B", Shape.of(items, 2), 0)
                        .of(items));
            }

            execution.run();

            execution.observers.forEach(RecordingObserver::response);
        }
    }

    @Test
    void refusesToGatherWhatIsNotThere() {
        try (Execution execution = new Execution(model, batch -> batch.gather("WHAT"))) {
            Execution.submit(execution, 1, 1);

            execution.run();

            execution.observers.forEach(observer ->
                    observer.assertError(ErrorCode.INVALID_ARGUMENT, "input 'WHAT' of model 'm': not in the request"));
        }
    }

    private static List<String> names(RecordingObserver observer) {
        return observer.response().outputs().stream().map(NamedTensor::name).toList();
    }
}
