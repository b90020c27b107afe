package dev.nereid.scheduler.batch;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.InferResponse;
import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;

/** How long the inputs of requests live: until their execution ends, or as long as outputs lie in them. */
final class InputLifetimeTest {
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    private final ModelSettings shaped = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .input(TensorSpec.of("SHAPE", DataType.INT64, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR))
            .output(TensorSpec.of("OUT", DataType.INT64, Shape.of(2)).with(TensorSpec.Trait.SHAPE_TENSOR))
            .build();

    @Test
    void endWithTheExecution() {
        try (Execution execution = new Execution(model, FakeInstance::copy)) {
            Execution.submit(execution, 1);
            execution.run();

            assertThat(execution.memory.buffersInUse()).as("the output").isEqualTo(1);
            assertThat(execution.scheduler.inFlight()).isEqualTo(1);
            assertThat(execution.observers.getFirst().floats("OUT")).containsExactly(0, 1);
        }
    }

    @Test
    void endWithTheExecutionOfABatch() {
        try (Execution execution = new Execution(model, FakeInstance::copy)) {
            Execution.submit(execution, 1, 2, 1);
            execution.run();

            assertThat(execution.memory.buffersInUse())
                    .as("the output of the batch")
                    .isEqualTo(1);
            assertThat(execution.scheduler.inFlight()).isEqualTo(3);
        }
    }

    @Test
    void endWithAnExecutionThatPutsMemoryOfItsOwn() {
        try (Execution execution = new Execution(model, InputLifetimeTest::putOwn)) {
            Execution.submit(execution, 1, 1);
            execution.run();

            assertThat(execution.memory.buffersInUse()).isZero();
            assertThat(execution.scheduler.inFlight()).isEqualTo(2);
        }
    }

    @Test
    void lastAsLongAsAnOutputThatLiesInThem() {
        try (Execution execution = new Execution(model, batch -> {
            for (InferenceRequest request : batch.requests()) {
                request.response().put("OUT", request.input("IN").orElseThrow());
            }
        })) {
            Execution.submit(execution, 1);
            execution.run();
            Execution.submit(execution, 1, 2);
            execution.run();

            assertThat(execution.memory.buffersInUse()).isEqualTo(3);
            assertThat(execution.observers.get(0).floats("OUT")).containsExactly(0, 1);
            execution.observers.get(1).close();
            assertThat(execution.observers.get(2).floats("OUT")).containsExactly(10, 11, 12, 13);
            assertThat(execution.memory.buffersInUse()).isEqualTo(2);
        }
    }

    @Test
    void lastAsLongAsAnOutputThatIsAPartOfThem() {
        try (Execution execution = new Execution(model, batch -> {
            for (InferenceRequest request : batch.requests()) {
                MemorySegment data = request.input("IN").orElseThrow().data().asSlice(8, 8);
                request.response().put("OUT", Tensor.of(DataType.FP32, Shape.of(1, 2), data));
            }
        })) {
            execution.submit(execution.request().floats("IN", Shape.of(1, 4), 3).of(1));
            execution.run();

            assertThat(execution.observers.getFirst().floats("OUT")).containsExactly(5, 6);
        }
    }

    @Test
    void lastAsLongAsAnEmptyOutputInThem() {
        ModelSettings empty = ModelSettings.builder("m", 1)
                .input(TensorSpec.of("IN", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(Shape.VARIABLE)))
                .build();
        try (Execution execution = new Execution(empty, batch -> {
            InferenceRequest request = batch.requests().getFirst();
            request.response().put("OUT", request.input("IN").orElseThrow());
        })) {
            execution.submit(execution.request().floats("IN", Shape.of(0), 3).of(1));
            execution.run();

            assertThat(execution.observers.getFirst().floats("OUT")).isEmpty();
        }
    }

    @Test
    void endOneByOne() {
        try (Execution execution = new Execution(model, batch -> {
            InferenceRequest first = batch.requests().getFirst();
            first.response().put("OUT", first.input("IN").orElseThrow());
            batch.requests().get(1).response().allocate("OUT", DataType.FP32, Shape.of(1, 2));
        })) {
            Execution.submit(execution, 1, 1);
            execution.run();

            assertThat(execution.memory.buffersInUse())
                    .as("an input, an output")
                    .isEqualTo(2);
            assertThat(execution.observers.getFirst().floats("OUT")).containsExactly(0, 1);
        }
    }

    @Test
    void ofTheFirstRequestLastAsLongAsAnOutputOfTheBatchInThem() {
        closeInAnyOrder(batch -> batch.put("OUT", batch.gather("SHAPE")));
    }

    @Test
    void ofTheFirstRequestLastAsLongAsAnOutputOfAnotherInThem() {
        closeInAnyOrder(batch -> {
            for (InferenceRequest request : batch.requests()) {
                request.response().put("OUT", batch.gather("SHAPE"));
            }
        });
    }

    @Test
    void ofAnyRequestLastAsLongAsAnOutputOfTheBatchInThem() {
        for (int i = 0; i < 3; i++) {
            int source = i;
            closeInAnyOrder(batch ->
                    batch.put("OUT", batch.requests().get(source).input("SHAPE").orElseThrow(), () -> {}));
        }
    }

    @Test
    void ofAnotherRequestLastAsLongAsAnOutputInThem() {
        for (int number : new int[] {2, 15, 16, 60}) {
            int last = number - 1;
            try (Execution execution = new Execution(model, batch -> {
                putOwn(batch.requests().subList(0, last));
                for (int i = 0; i < last; i++) {
                    assertThat(batch.requests().get(i).id()).isEqualTo(String.valueOf(i));
                }
                Tensor middle = batch.requests().get(last / 2).input("IN").orElseThrow();
                batch.requests().get(last).response().put("OUT", middle);
            })) {
                Execution.submit(
                        execution, IntStream.generate(() -> 1).limit(number).toArray());
                execution.run();

                assertThat(execution.memory.buffersInUse()).isEqualTo(1);
                execution.observers.subList(0, last).forEach(RecordingObserver::close);
                int pair = last / 2;
                assertThat(execution.observers.get(last).floats("OUT")[0]).isEqualTo(10f * pair);
            }
        }
    }

    private void closeInAnyOrder(FakeInstance.Execution backend) {
        for (List<Integer> order : List.of(List.of(0, 1, 2), List.of(2, 1, 0), List.of(1, 0, 2))) {
            try (Execution execution = new Execution(shaped, backend)) {
                submitShaped(execution, 3);
                execution.run();

                for (int index : order) {
                    RecordingObserver observer = execution.observers.get(index);
                    assertThat(observer.output("OUT").data().toArray(ValueLayout.JAVA_LONG_UNALIGNED))
                            .containsExactly(4, 5);
                    observer.close();
                }
            }
        }
    }

    @Test
    void ofTheFirstRequestEndIfNoOutputLiesInThem() {
        try (Execution execution = new Execution(shaped, batch -> {
            batch.gather("SHAPE");
            batch.allocate("OUT", DataType.INT64, Shape.of(2));
        })) {
            submitShaped(execution, 2);
            execution.run();

            assertThat(execution.memory.buffersInUse()).as("the output").isEqualTo(1);
        }
    }

    @Test
    void areReleasedIfAnOutputInThemIsRefused() {
        try (Execution execution = new Execution(shaped, batch -> {
            Tensor gathered = batch.gather("SHAPE");
            batch.put("OUT", gathered);
            batch.put("OUT", gathered);
        })) {
            submitShaped(execution, 2);
            execution.run();

            execution.observers.forEach(observer -> assertThat(observer.error()).isNotNull());
            assertThat(execution.memory.buffersInUse()).isZero();
        }
    }

    private final ModelSettings decoupled = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .decoupled(true)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();

    @Test
    void lastUntilTheSenderEnds() {
        List<InferenceRequest> requests = new ArrayList<>();
        List<ResponseSender> senders = new ArrayList<>();
        try (Execution execution = new Execution(decoupled, batch -> {
            for (InferenceRequest request : batch.requests()) {
                requests.add(request);
                senders.add(request.sender());
            }
        })) {
            Execution.submit(execution, 1, 1);
            execution.run();

            senders.forEach(sender -> sender.send(response(sender)));
            assertThat(requests.get(1).input("IN").orElseThrow().data().get(ValueLayout.JAVA_FLOAT, 0))
                    .isEqualTo(10);
            assertThat(execution.memory.buffersInUse()).as("inputs and outputs").isEqualTo(4);
            senders.get(0).complete();
            senders.get(1).complete(response(senders.get(1)));

            assertThat(execution.memory.buffersInUse()).as("outputs").isEqualTo(3);
            assertThat(execution.scheduler.inFlight()).isEqualTo(2);
            execution.observers.forEach(observer -> observer.responses().forEach(InferResponse::close));
            assertThat(execution.memory.buffersInUse()).isZero();
        }
    }

    @Test
    void lastUntilTheExecutionEndsAfterItsSender() {
        List<DeferredExecution> executions = new ArrayList<>();
        List<InferenceRequest> requests = new ArrayList<>();
        try (Execution execution = new Execution(decoupled, batch -> {
            executions.add(batch.defer());
            requests.addAll(batch.requests());
            ResponseSender sender = batch.requests().getFirst().sender();
            sender.complete(response(sender));
        })) {
            Execution.submit(execution, 1);
            execution.run();

            assertThat(requests.getFirst().input("IN").orElseThrow().data().get(ValueLayout.JAVA_FLOAT, 0))
                    .isZero();
            executions.getFirst().complete();

            assertThat(execution.memory.buffersInUse()).as("the output").isEqualTo(1);
        }
    }

    @Test
    void lastAsLongAsAnOutputOfASenderThatLiesInThem() {
        try (Execution execution = new Execution(decoupled, batch -> {
            for (InferenceRequest request : batch.requests()) {
                ResponseSender sender = request.sender();
                InferenceResponse last = sender.newResponse();
                last.put("OUT", batch.requests().getFirst().input("IN").orElseThrow());
                sender.complete(last);
            }
        })) {
            Execution.submit(execution, 1, 1);
            execution.run();

            execution.observers.getFirst().close();
            assertThat(execution.memory.buffersInUse()).as("one input").isEqualTo(1);
            assertThat(execution.observers.get(1).floats("OUT")).containsExactly(0, 1);
        }
    }

    @Test
    void lastAsLongAsTheRequestIfItWantsItsOutputInMemoryOfTheClient() {
        MemorySegment target = Arena.ofAuto().allocate(64, 64);
        List<String> released = new ArrayList<>();
        try (Execution execution = new Execution(model, FakeInstance::copy)) {
            RecordingObserver observer = execution.submit(execution
                    .request()
                    .floats("IN", Shape.of(1, 2), 3)
                    .into("OUT", target)
                    .onRelease(() -> released.add("request"))
                    .of(1));
            execution.run();

            assertThat(released).isEmpty();
            observer.close();
            assertThat(released).containsExactly("request");
        }
    }

    @Test
    void areReleasedOnce() {
        List<String> released = new ArrayList<>();
        try (Execution execution = new Execution(model, FakeInstance::copy)) {
            RecordingObserver observer = execution.submit(execution
                    .request()
                    .floats("IN", Shape.of(1, 2), 3)
                    .onRelease(() -> released.add("request"))
                    .of(1));
            execution.run();

            assertThat(released).containsExactly("request");
            observer.close();
            assertThat(released).containsExactly("request");
        }
    }

    private static InferenceResponse response(ResponseSender sender) {
        InferenceResponse response = sender.newResponse();
        try {
            response.allocate("OUT", DataType.FP32, Shape.of(1, 2));
        } catch (BackendException e) {
            throw new AssertionError(e);
        }
        return response;
    }

    private static void submitShaped(Execution execution, int number) {
        for (int i = 0; i < number; i++) {
            execution.submit(execution
                    .request()
                    .floats("IN", Shape.of(1, 2), 0)
                    .longs("SHAPE", Shape.of(2), 4, 5)
                    .of(1));
        }
    }

    private static void putOwn(Batch batch) {
        putOwn(batch.requests());
    }

    private static void putOwn(List<InferenceRequest> requests) {
        for (InferenceRequest request : requests) {
            Tensor own = Tensor.of(DataType.FP32, Shape.of(1, 2), Arena.ofAuto().allocate(8));
            request.response().put("OUT", own);
        }
    }
}
