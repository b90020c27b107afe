package dev.nereid.scheduler.request;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.TensorLease;
import dev.nereid.scheduler.BatchingPolicy;
import dev.nereid.scheduler.Execution;
import dev.nereid.scheduler.FakeInstance;
import dev.nereid.scheduler.Latches;
import dev.nereid.scheduler.ModelPlan;
import dev.nereid.scheduler.ModelScheduler;
import dev.nereid.scheduler.RecordingObserver;
import dev.nereid.scheduler.Requests;
import dev.nereid.scheduler.SchedulerEnvironment;
import dev.nereid.scheduler.Scopes;
import dev.nereid.scheduler.instance.Instance;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.time.TimerThread;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import dev.nereid.testkit.LeakCheckingMemory;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Leases of single outputs, which outlive their responses. */
@Timeout(60)
final class OutputLeaseTest {
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("MORE", DataType.FP32, Shape.of(2)))
            .build();

    @Test
    void keepsItsOutputAndNoOther() {
        try (Execution execution = new Execution(model, OutputLeaseTest::twoOutputs)) {
            Execution.submit(execution, 1);
            execution.run();
            InferResponse response = execution.observers.getFirst().response();

            TensorLease lease = response.lease(1);
            assertThat(execution.memory.buffersInUse()).isEqualTo(2);
            response.close();

            assertThat(execution.memory.buffersInUse()).as("the leased output").isEqualTo(1);
            assertThat(execution.scheduler.inFlight()).isEqualTo(1);
            assertThat(floats(lease)).containsExactly(7, 8);
            assertThat(lease.tensor()).isSameAs(response.outputs().get(1).tensor());
            lease.close();
            lease.close();
            assertThat(execution.memory.buffersInUse()).isZero();
            assertThat(execution.scheduler.inFlight()).isZero();
        }
    }

    @Test
    void mayEndBeforeItsResponse() {
        try (Execution execution = new Execution(model, OutputLeaseTest::twoOutputs)) {
            Execution.submit(execution, 1);
            execution.run();
            InferResponse response = execution.observers.getFirst().response();

            TensorLease first = response.lease(0);
            TensorLease second = response.lease(0);
            first.close();
            assertThat(execution.observers.getFirst().floats("OUT")).containsExactly(5, 6);
            response.close();
            assertThat(floats(second)).containsExactly(5, 6);
            second.close();
        }
    }

    @Test
    void keepsThePartOfABatch() {
        try (Execution execution = new Execution(model, FakeInstance::copy)) {
            Execution.submit(execution, 1, 2);
            execution.run();

            TensorLease lease = execution.observers.get(1).response().lease(0);
            execution.observers.forEach(RecordingObserver::close);

            assertThat(execution.scheduler.inFlight()).isEqualTo(1);
            assertThat(floats(lease)).containsExactly(10, 11, 12, 13);
            lease.close();
        }
    }

    @Test
    void keepsTheInputsThatItsOutputLiesIn() {
        try (Execution execution = new Execution(model, batch -> {
            for (InferenceRequest request : batch.requests()) {
                request.response().put("OUT", request.input("IN").orElseThrow());
                request.response().allocate("MORE", DataType.FP32, Shape.of(1, 2));
            }
        })) {
            Execution.submit(execution, 1);
            execution.run();

            TensorLease lease = execution.observers.getFirst().response().lease(0);
            execution.observers.getFirst().close();

            assertThat(execution.memory.buffersInUse()).isEqualTo(1);
            assertThat(floats(lease)).containsExactly(0, 1);
            lease.close();
        }
    }

    @Test
    void keepsAnOutputOfAStream() {
        ModelSettings decoupled = ModelSettings.builder("m", 1)
                .decoupled(true)
                .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
                .build();
        List<TensorLease> leases = new ArrayList<>();
        try (Execution execution = new Execution(decoupled, batch -> {
            ResponseSender sender = batch.requests().getFirst().sender();
            for (int i = 0; i < 2; i++) {
                InferenceResponse response = sender.newResponse();
                fill(response.allocate("OUT", DataType.FP32, Shape.of(2)), i);
                sender.send(response);
            }
            sender.complete();
        })) {
            RecordingObserver observer = execution.submit(execution.request().of(1));
            execution.run();

            observer.responses().forEach(response -> leases.add(response.lease(0)));
            observer.responses().forEach(InferResponse::close);

            assertThat(floats(leases.get(0))).containsExactly(0, 1);
            assertThat(floats(leases.get(1))).containsExactly(1, 2);
            leases.forEach(TensorLease::close);
        }
    }

    @Test
    void keepsMemoryThatOutputsShare() {
        List<String> released = new ArrayList<>();
        ModelScope scope = Scopes.of(model, new LeakCheckingMemory(), () -> 0);
        CheckedRequest checked = Requests.to(model, scope.memory()).of(1);
        ScheduledRequest request = new ScheduledRequest(scope, null, checked, new RecordingObserver(), 0);
        Tensor tensor = Tensor.of(DataType.FP32, Shape.of(2), Arena.ofAuto().allocate(8));
        FinishedResponse response = new FinishedResponse(
                request,
                List.of(new NamedTensor("OUT", tensor), new NamedTensor("MORE", tensor)),
                List.of(ReferenceCountedMemory.of(() -> released.add("entry"), null)),
                Map.of(),
                true);
        request.release();

        TensorLease lease = response.lease(1);
        response.close();
        assertThat(released).isEmpty();
        assertThat(scope.drain().count()).isEqualTo(1);
        lease.close();

        assertThat(released).containsExactly("entry");
        assertThat(scope.drain().count()).isZero();
    }

    @Test
    void isRefusedAfterTheClose() {
        try (Execution execution = new Execution(model, OutputLeaseTest::twoOutputs)) {
            Execution.submit(execution, 1);
            execution.run();
            InferResponse response = execution.observers.getFirst().response();

            assertThatExceptionOfType(IndexOutOfBoundsException.class).isThrownBy(() -> response.lease(2));
            TensorLease lease = response.lease(0);
            response.close();

            assertThatIllegalStateException()
                    .isThrownBy(() -> response.lease(0))
                    .withMessage("response: closed (expected: leased before its close)");
            lease.close();
            assertThatIllegalStateException().isThrownBy(() -> response.lease(0));
        }
    }

    @Test
    void keepsTheInstanceOpen() throws InterruptedException {
        List<String> events = new ArrayList<>();
        FakeInstance instance = new FakeInstance(batch -> {
            MemorySegment data = Arena.ofAuto().allocate(8);
            batch.put("OUT", Tensor.of(DataType.FP32, Shape.of(1, 2), data), () -> events.add("released"));
        });
        try (LeakCheckingMemory memory = new LeakCheckingMemory();
                TimerThread timer = new TimerThread(System::nanoTime)) {
            ModelScheduler scheduler = ModelScheduler.start(
                    new ModelPlan(model, BatchingPolicy.NONE),
                    List.of(new Instance("i0", Device.CPU, instance)),
                    new SchedulerEnvironment(memory, System::nanoTime, timer));
            RecordingObserver observer = new RecordingObserver();
            scheduler.submit(
                    Requests.to(model, memory).floats("IN", Shape.of(1, 2), 1).of(1), observer);
            TensorLease lease = observer.await().response().lease(0);
            observer.close();
            CountDownLatch closing = new CountDownLatch(1);
            Thread closer = Thread.startVirtualThread(() -> {
                closing.countDown();
                scheduler.close();
            });
            Latches.await(closing);

            assertThat(closer.join(Duration.ofMillis(100))).isFalse();
            assertThat(instance.isClosed()).isFalse();
            assertThat(events).isEmpty();
            lease.close();

            assertThat(closer.join(Duration.ofSeconds(30))).isTrue();
            assertThat(instance.isClosed()).isTrue();
            assertThat(events).containsExactly("released");
        }
    }

    private static void twoOutputs(Batch batch) {
        fill(batch.allocate("OUT", DataType.FP32, Shape.of(1, 2)), 5);
        fill(batch.allocate("MORE", DataType.FP32, Shape.of(1, 2)), 7);
    }

    private static void fill(Tensor tensor, float first) {
        tensor.data().setAtIndex(ValueLayout.JAVA_FLOAT, 0, first);
        tensor.data().setAtIndex(ValueLayout.JAVA_FLOAT, 1, first + 1);
    }

    private static float[] floats(TensorLease lease) {
        return lease.tensor().data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }
}
