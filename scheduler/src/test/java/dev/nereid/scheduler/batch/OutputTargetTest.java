package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ModelSettingsBuilder;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Outputs in client memory, however the backend creates them. */
final class OutputTargetTest {
    private static final String TOO_SMALL = "shared memory size specified with the request for output 'OUT' (%d bytes)"
            + " should be at least %d bytes to hold the results";

    private final MemorySegment target = Arena.ofAuto().allocate(64, 64);

    private final ModelSettings model = settings().build();

    @ParameterizedTest
    @ValueSource(longs = {8, 9, 64})
    void writesAllocatedOutputsIntoTheTarget(long size) {
        try (Execution execution = new Execution(model, FakeInstance::copy)) {
            RecordingObserver observer = execution.submit(
                    request(execution, 3).into("OUT", target.asSlice(0, size)).of(1));
            execution.run();

            assertThat(numbers(2)).containsExactly(3, 4);
            assertLiesInTheTarget(observer.response(), 8);
            assertThat(execution.memory.buffersInUse()).as("only the input").isEqualTo(1);
        }
    }

    @Test
    void writesWhatTheBackendPuts() {
        try (Execution execution = new Execution(model, OutputTargetTest::pass)) {
            RecordingObserver observer =
                    execution.submit(request(execution, 3).into("OUT", target).of(1));
            execution.run();

            assertThat(numbers(2)).containsExactly(3, 4);
            assertLiesInTheTarget(observer.response(), 8);
        }
    }

    @Test
    void writesThePartOfEachRequestOfABatch() {
        try (Execution execution = new Execution(model, FakeInstance::copy)) {
            execution.submit(
                    request(execution, 1).into("OUT", target.asSlice(0, 8)).of(1));
            RecordingObserver without = execution.submit(request(execution, 3).of(1));
            execution.submit(
                    request(execution, 5).into("OUT", target.asSlice(8, 8)).of(1));
            execution.run();

            assertThat(numbers(4)).containsExactly(1, 2, 5, 6);
            assertThat(without.floats("OUT")).containsExactly(3, 4);
        }
    }

    @Test
    void failsOnlyTheRequestWhoseTargetIsTooSmall() {
        try (Execution execution = new Execution(model, FakeInstance::copy)) {
            RecordingObserver small = execution.submit(
                    request(execution, 1).into("OUT", target.asSlice(0, 7)).of(1));
            RecordingObserver other = execution.submit(request(execution, 3).of(1));
            execution.run();

            small.assertError(ErrorCode.INTERNAL, TOO_SMALL.formatted(7, 8));
            assertThat(other.floats("OUT")).containsExactly(3, 4);
        }
    }

    @Test
    void reportsASmallTargetToTheBackend() {
        for (FakeInstance.Execution backend :
                List.<FakeInstance.Execution>of(FakeInstance::copy, OutputTargetTest::pass)) {
            try (Execution execution = new Execution(model, backend)) {
                RecordingObserver small = execution.submit(
                        request(execution, 1).into("OUT", target.asSlice(0, 7)).of(1));
                execution.run();

                small.assertError(ErrorCode.INTERNAL, TOO_SMALL.formatted(7, 8));
            }
        }
    }

    @Test
    void writesByteStrings() {
        ModelSettings strings = ModelSettings.builder("m", 1)
                .output(TensorSpec.of("OUT", DataType.BYTES, Shape.of(2)))
                .build();
        FakeInstance.Execution backend = batch -> {
            Tensor out = batch.allocateBytes("OUT", Shape.of(2), 11);
            Requests.write(out.data(), "ab", "c");
        };
        try (Execution execution = new Execution(strings, backend)) {
            RecordingObserver observer =
                    execution.submit(execution.request().into("OUT", target).of(1));
            execution.run();
            RecordingObserver small = execution.submit(
                    execution.request().into("OUT", target.asSlice(32, 10)).of(1));
            execution.run();

            assertLiesInTheTarget(observer.response(), 11);
            assertThat(observer.response().outputs().getFirst().tensor().strings())
                    .containsExactly("ab", "c");
            small.assertError(ErrorCode.INTERNAL, TOO_SMALL.formatted(10, 11));
        }
    }

    @Test
    void showsTheShapeBeforeTheReshape() {
        ModelSettings reshaped = ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1, 2)).withReshape(Shape.of(2)))
                .build();
        try (Execution execution = new Execution(reshaped, FakeInstance::copy)) {
            RecordingObserver observer =
                    execution.submit(request(execution, 3).into("OUT", target).of(1));
            execution.run();

            assertThat(observer.response().outputs().getFirst().tensor().shape())
                    .isEqualTo(Shape.of(1, 1, 2));
            assertLiesInTheTarget(observer.response(), 8);
        }
    }

    @Test
    void overwritesWithEachResponseOfADecoupledModel() {
        FakeInstance.Execution backend = batch -> {
            ResponseSender sender = batch.requests().getFirst().sender();
            for (float value = 1; value <= 3; value++) {
                InferenceResponse response = sender.newResponse();
                response.allocate("OUT", DataType.FP32, Shape.of(1, 2)).data().set(ValueLayout.JAVA_FLOAT, 0, value);
                sender.send(response);
            }
            sender.complete();
        };
        try (Execution execution = new Execution(settings().decoupled(true).build(), backend)) {
            RecordingObserver observer =
                    execution.submit(request(execution, 0).into("OUT", target).of(1));
            execution.run();

            assertThat(observer.responses()).hasSize(3).allSatisfy(response -> assertLiesInTheTarget(response, 8));
            assertThat(numbers(1)).containsExactly(3);
        }
    }

    @Test
    void endsTheResponsesOfADecoupledModelThatDoNotFit() {
        FakeInstance.Execution backend = batch -> {
            InferenceRequest request = batch.requests().getFirst();
            ResponseSender sender = request.sender();
            for (int i = 0; i < 2; i++) {
                InferenceResponse response = sender.newResponse();
                response.put("OUT", request.input("IN").orElseThrow());
                sender.send(response);
            }
            InferenceResponse last = sender.newResponse();
            last.put("OUT", request.input("IN").orElseThrow());
            sender.complete(last);
        };
        try (Execution execution = new Execution(settings().decoupled(true).build(), backend)) {
            RecordingObserver small = execution.submit(
                    request(execution, 0).into("OUT", target.asSlice(0, 4)).of(1));
            execution.run();

            small.assertError(ErrorCode.INTERNAL, TOO_SMALL.formatted(4, 8));
            assertThat(small.responses()).isEmpty();
        }
    }

    @Test
    void writesNoOutputThatIsNotRequested() {
        target.fill((byte) 0x5a);
        try (Execution execution = new Execution(model, FakeInstance::copy)) {
            RecordingObserver observer = execution.submit(
                    request(execution, 3).outputs().into("OUT", target).of(1));
            execution.run();

            assertThat(observer.response().outputs()).isEmpty();
            assertThat(target.toArray(ValueLayout.JAVA_BYTE)).containsOnly((byte) 0x5a);
        }
    }

    private static ModelSettingsBuilder settings() {
        return ModelSettings.builder("m", 1)
                .maxBatchSize(8)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)));
    }

    private static Requests request(Execution execution, float first) {
        return execution.request().floats("IN", Shape.of(1, 2), first);
    }

    private static void pass(Batch batch) {
        for (InferenceRequest request : batch.requests()) {
            request.response().put("OUT", request.input("IN").orElseThrow());
        }
    }

    private void assertLiesInTheTarget(InferResponse response, long byteSize) {
        MemorySegment data = response.outputs().getFirst().tensor().data();
        assertThat(data.address()).isEqualTo(target.address());
        assertThat(data.byteSize()).isEqualTo(byteSize);
    }

    private float[] numbers(int count) {
        return target.asSlice(0, count * 4L).toArray(ValueLayout.JAVA_FLOAT);
    }
}
