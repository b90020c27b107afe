package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferResponse;
import dev.nereid.api.statistics.ExecutionStatistics;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.BiConsumer;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Senders, leases and forgotten responses of a model that is not decoupled. */
final class SingleSenderTest {
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(2)))
            .build();
    private final List<ResponseSender> senders = new ArrayList<>();
    private final List<InferenceRequest> requests = new ArrayList<>();
    private final List<Runnable> leases = new ArrayList<>();

    private Execution with(FakeInstance.Execution backend) {
        return new Execution(model, backend);
    }

    /** Detaches the first request, and answers all with the inputs of the batch. */
    private void detachFirst(Batch batch) {
        requests.addAll(batch.requests());
        senders.add(batch.requests().getFirst().sender());
        FakeInstance.copy(batch);
    }

    @Test
    void oneRequestOfABatchIsDeferredAlone() {
        try (Execution execution = with(this::detachFirst)) {
            Execution.submit(execution, 1, 1);
            execution.run();
            assertThat(execution.observers.get(0).isSilent()).isTrue();
            assertThat(execution.observers.get(1).hasEnded()).isTrue();

            assertThat(requests.getFirst().requireInput("IN").type()).isEqualTo(DataType.FP32); // still usable
            senders.getFirst().send(response(senders.getFirst(), 7));
            assertThat(values(execution.observers.getFirst())).containsExactly(7f); // not those of the batch
            assertThat(execution.observers.getFirst().responses()).allMatch(InferResponse::isFinal);
            senders.getFirst().complete();
        }
    }

    @Test
    void isCountedOnce() {
        try (Execution execution = with(this::detachFirst)) {
            Execution.submit(execution, 1, 1);
            execution.run();
            senders.getFirst().complete(response(senders.getFirst(), 7));
            ExecutionStatistics counted =
                    execution.scheduler.model.meter().read().executions();
            assertThat(counted.inferenceCount()).isEqualTo(2);
            assertThat(counted.executionCount()).isEqualTo(1);
            assertThat(values(execution.observers.getFirst())).containsExactly(7f);
        }
    }

    @Test
    void refusesASecondResponse() {
        try (Execution execution = with(this::detachFirst)) {
            Execution.submit(execution, 1, 1, 1);
            execution.run();
            ResponseSender sender = senders.getFirst();
            sender.send(response(sender, 1));
            InferenceResponse second = response(sender, 2);
            assertThatIllegalStateException()
                    .isThrownBy(() -> sender.send(second))
                    .withMessageContaining("a second response (expected: one, since the model is not decoupled");
            assertThatIllegalStateException()
                    .isThrownBy(() -> sender.sendError(new BackendException(ErrorCode.INTERNAL, "late")));
            InferenceResponse third = response(sender, 3);
            assertThatIllegalStateException().isThrownBy(() -> sender.complete(third)); // and ends it
            sender.fail(new BackendException(ErrorCode.INTERNAL, "dropped"));
            assertThat(values(execution.observers.getFirst())).containsExactly(1f);
        }
    }

    @Test
    void anEndWithoutAResponseIsAFailure() {
        try (Execution execution = with(this::detachFirst)) {
            Execution.submit(execution, 1, 1);
            execution.run();
            senders.getFirst().complete();
            execution
                    .observers
                    .getFirst()
                    .assertError(
                            ErrorCode.INTERNAL, "model 'm': its backend sent no response (expected: one, or an error)");
            senders.getFirst().send(response(senders.getFirst(), 1)); // dropped
        }
    }

    @Test
    void anErrorIsTheResponse() {
        try (Execution execution = with(this::detachFirst)) {
            Execution.submit(execution, 1, 1);
            execution.run();
            senders.getFirst().sendError(new BackendException(ErrorCode.NOT_FOUND, "no such word"));
            execution.observers.getFirst().assertError(ErrorCode.NOT_FOUND, "no such word");
            senders.getFirst().complete();
        }
    }

    @Test
    void survivesTheFailureOfItsExecution() {
        try (Execution execution = with(batch -> {
            senders.add(batch.requests().getFirst().sender());
            throw new BackendException(ErrorCode.INTERNAL, "broken");
        })) {
            Execution.submit(execution, 1, 1);
            execution.run();
            execution.observers.get(1).assertError(ErrorCode.INTERNAL, "broken");
            senders.getFirst().complete(response(senders.getFirst(), 5));
            assertThat(values(execution.observers.getFirst())).containsExactly(5f);
        }
    }

    @Test
    void aRequestWithASenderHasNoOtherResponse() {
        try (Execution execution = with(batch -> {
            InferenceRequest request = batch.requests().getFirst();
            request.response().allocate("OUT", DataType.FP32, Shape.of(1, 2)); // dropped
            senders.add(request.sender());
            assertThatIllegalStateException().isThrownBy(request::response).withMessageContaining("has a sender");
            senders.getFirst().complete(response(senders.getFirst(), 3)); // within the execution
        })) {
            Execution.submit(execution, 1);
            execution.run();
            assertThat(values(execution.observers.getFirst())).containsExactly(3f);
        }
    }

    @Test
    void aCancelledRequestEndsWithItsSender() {
        try (Execution execution = with(this::detachFirst)) {
            Execution.submit(execution, 1, 1);
            execution.run();
            execution.requests.getFirst().cancel();
            assertThat(senders.getFirst().isCancelled()).isTrue();
            senders.getFirst().send(response(senders.getFirst(), 1));
            senders.getFirst().complete();
            execution.observers.getFirst().assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
    }

    @Test
    @Timeout(20)
    void anEndWhileTheResponseIsSentLosesNothing() throws InterruptedException {
        CountDownLatch sending = new CountDownLatch(1);
        CountDownLatch written = new CountDownLatch(1);
        try (Execution execution = with(this::detachFirst)) {
            Execution.submit(execution, 1, 1);
            execution.run();
            ResponseSender sender = senders.getFirst();
            InferenceResponse response = response(sender, 8);
            response.fence("OUT", new FakeFence(() -> {
                sending.countDown();
                awaitUninterruptibly(written);
            }));
            Thread other = Thread.ofPlatform().start(() -> sender.send(response));
            sending.await();
            sender.complete();
            assertThat(execution.observers.getFirst().isSilent()).isTrue();
            written.countDown();
            other.join();
            assertThat(values(execution.observers.getFirst())).containsExactly(8f);
        }
    }

    @Tag("slow")
    @Test
    @Timeout(20)
    void oneOfTwoEndsIsTheResponse() throws InterruptedException {
        for (int i = 0; i < 2000; i++) {
            endTwice(ResponseSender::complete);
        }
    }

    @Tag("slow")
    @Test
    @Timeout(20)
    void aResponseBesideAnEndEndsTheRequest() throws InterruptedException {
        for (int i = 0; i < 2000; i++) {
            endTwice(ResponseSender::send);
        }
    }

    /** Responds on this thread, and ends the sender on another one at the same time. */
    private void endTwice(BiConsumer<ResponseSender, InferenceResponse> respond) throws InterruptedException {
        senders.clear();
        try (Execution execution = with(this::detachFirst)) {
            Execution.submit(execution, 1, 1);
            execution.run();
            ResponseSender sender = senders.getFirst();
            InferenceResponse response = response(sender, 8);
            AtomicInteger arrived = new AtomicInteger();
            Thread other = Thread.ofPlatform().start(() -> {
                meet(arrived);
                sender.complete();
            });
            meet(arrived);
            respond.accept(sender, response);
            other.join();
            assertThat(execution.observers.getFirst().hasEnded()).isTrue();
        }
    }

    /** Waits for the other one of two threads: without a change of threads, unless the other one has no processor. */
    @SuppressWarnings("ThreadPriorityCheck") // The order of the threads does not matter.
    private static void meet(AtomicInteger arrived) {
        arrived.incrementAndGet();
        for (int spins = 0; arrived.get() < 2; spins++) {
            if (spins < 10_000) {
                Thread.onSpinWait();
            } else {
                Thread.yield();
            }
        }
    }

    private static void awaitUninterruptibly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    /** The memory of the execution checks that all is freed. */
    @Test
    void discardsForgottenResponsesAtItsEnd() {
        try (Execution execution = with(batch -> {
            ResponseSender sender = batch.requests().getFirst().sender();
            InferenceResponse forgotten = response(sender, 1);
            InferenceResponse broken = response(sender, 2);
            assertThatThrownBy(() -> broken.put(
                            "OUT", Tensor.of(DataType.FP32, Shape.of(1, 2), MemorySegment.ofArray(new float[2]))))
                    .isInstanceOf(RuntimeException.class);
            response(sender, 3).discard();
            sender.complete(response(sender, 4));
            assertThatIllegalStateException()
                    .isThrownBy(() -> forgotten.allocate("OUT", DataType.FP32, Shape.of(1, 2)));
            forgotten.discard();
            sender.newResponse().discard();
        })) {
            Execution.submit(execution, 1);
            execution.run();
            assertThat(values(execution.observers.getFirst())).containsExactly(4f);
        }
    }

    @Test
    void dropsAResponseThatTheEndDiscarded() {
        try (Execution execution = with(batch -> {
            ResponseSender sender = batch.requests().getFirst().sender();
            InferenceResponse late = response(sender, 1);
            sender.fail(new BackendException(ErrorCode.INTERNAL, "first"));
            sender.send(late);
            sender.complete(late);
        })) {
            Execution.submit(execution, 1);
            execution.run();
            execution.observers.getFirst().assertError(ErrorCode.INTERNAL, "first");
        }
    }

    @Test
    void leavesTheResponseOfAnotherThreadToThat() throws InterruptedException {
        List<InferenceResponse> written = new ArrayList<>();
        try (Execution execution = with(this::detachFirst)) {
            Execution.submit(execution, 1, 1);
            execution.run();
            ResponseSender sender = senders.getFirst();
            Thread other = Thread.ofPlatform().start(() -> written.add(sender.newResponse()));
            other.join();
            Tensor[] tensor = new Tensor[1];
            Thread another = Thread.ofPlatform()
                    .start(() -> tensor[0] = written.getFirst().allocate("OUT", DataType.FP32, Shape.of(1, 2)));
            another.join();
            sender.complete(response(sender, 1));
            tensor[0].data().set(ValueLayout.JAVA_FLOAT, 0, 9); // not freed
            sender.newResponse().discard();
            written.getFirst().discard();
            assertThat(values(execution.observers.getFirst())).containsExactly(1f);
        }
    }

    @Test
    void aLeaseKeepsTheInputsBeyondTheResponse() {
        List<Tensor> inputs = new ArrayList<>();
        Execution execution = with(batch -> {
            for (InferenceRequest request : batch.requests()) {
                inputs.add(request.requireInput("IN"));
                leases.add(request.leaseInputs());
                leases.add(request.leaseInputs());
                requests.add(request);
            }
            FakeInstance.copy(batch);
        });
        Execution.submit(execution, 1, 1);
        execution.run();
        execution.observers.forEach(observer -> {
            assertThat(observer.hasEnded()).isTrue();
            observer.close(); // the responses
        });
        assertThatIllegalStateException().isThrownBy(requests.getFirst()::leaseInputs);
        assertThat(execution.scheduler.model.drain().count()).isEqualTo(2); // a close waits
        assertThat(inputs.getFirst().data().get(ValueLayout.JAVA_FLOAT, 0)).isNotNaN();
        leases.get(0).run();
        leases.get(0).run();
        assertThat(inputs.getFirst().data().get(ValueLayout.JAVA_FLOAT, 0)).isNotNaN();
        leases.forEach(Runnable::run);
        leases.forEach(Runnable::run);
        assertThat(execution.scheduler.model.drain().count()).isZero();
        execution.close();
    }

    @Test
    void aLeaseOutlivesTheSender() {
        try (Execution execution = with(this::detachFirst)) {
            Execution.submit(execution, 1, 1);
            execution.run();
            InferenceRequest request = requests.getFirst();
            Tensor input = request.requireInput("IN");
            Runnable lease = request.leaseInputs();
            senders.getFirst().complete(response(senders.getFirst(), 5));
            assertThatIllegalStateException().isThrownBy(request::leaseInputs);
            execution.observers.getFirst().close();
            assertThat(input.data().get(ValueLayout.JAVA_FLOAT, 0)).isNotNaN();
            lease.run();
        }
    }

    private static InferenceResponse response(ResponseSender sender, float value) {
        InferenceResponse response = sender.newResponse();
        response.allocate("OUT", DataType.FP32, Shape.of(1, 2)).data().set(ValueLayout.JAVA_FLOAT, 0, value);
        return response;
    }

    private static List<Float> values(RecordingObserver observer) {
        return observer.responses().stream()
                .map(response -> response.outputs().getFirst().tensor().data().get(ValueLayout.JAVA_FLOAT, 0))
                .toList();
    }
}
