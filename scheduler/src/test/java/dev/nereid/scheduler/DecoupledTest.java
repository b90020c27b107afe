package dev.nereid.scheduler;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatIllegalStateException;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.ValueLayout;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

final class DecoupledTest {
    private final ModelSettings model = ModelSettings.builder("m", 1)
            .maxBatchSize(64)
            .decoupled(true)
            .input(TensorSpec.of("IN", DataType.FP32, Shape.of(2)))
            .output(TensorSpec.of("OUT", DataType.FP32, Shape.of(1)))
            .build();
    private final List<ResponseSender> senders = new ArrayList<>();
    private final List<InferenceRequest> requests = new ArrayList<>();
    private final Execution execution = new Execution(model, batch -> {
        for (InferenceRequest request : batch.requests()) {
            requests.add(request);
            senders.add(request.sender());
            assertThat(request.sender()).isSameAs(senders.getLast());
        }
    });

    @Test
    void sendsAnyNumberOfResponsesAfterTheExecution() {
        try (execution) {
            Execution.submit(execution, 1, 1);
            execution.run();
            RecordingObserver first = execution.observers.get(0);

            send(senders.get(0), 1);
            send(senders.get(0), 2);
            assertThat(first.hasEnded()).isFalse();
            senders.get(0).complete();
            senders.get(1).complete();

            assertThat(values(first)).containsExactly(1f, 2f);
            assertThat(first.responses()).noneMatch(InferResponse::isFinal);
            assertThat(first.hasEnded()).isTrue();
            assertThat(execution.observers.get(1).responses()).isEmpty();
        }
    }

    @Test
    void marksTheLastResponse() {
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();

            send(senders.getFirst(), 1);
            senders.getFirst().complete(response(senders.getFirst(), 2));

            RecordingObserver observer = execution.observers.getFirst();
            assertThat(values(observer)).containsExactly(1f, 2f);
            assertThat(observer.responses()).extracting(InferResponse::isFinal).containsExactly(false, true);
        }
    }

    @Test
    void goesOnAfterAFailedResponse() {
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();
            ResponseSender sender = senders.getFirst();

            send(sender, 1);
            sender.sendError(new BackendException(ErrorCode.UNAVAILABLE, "not this one"));
            send(sender, 2);
            sender.sendError(new BackendException(ErrorCode.INTERNAL, "nor this"));
            RecordingObserver observer = execution.observers.getFirst();
            assertThat(observer.hasEnded()).isFalse();
            sender.complete(response(sender, 3));
            sender.sendError(new BackendException(ErrorCode.INTERNAL, "too late"));

            assertThat(values(observer)).containsExactly(1f, 2f, 3f);
            assertThat(observer.failedResponses())
                    .extracting(InferenceException::publicMessage)
                    .containsExactly("not this one", "nor this");
            assertThat(observer.failedResponses().getFirst().code()).isEqualTo(ErrorCode.UNAVAILABLE);
            observer.check();
        }
    }

    @Test
    void sendsNoFailedResponseAfterCancellation() {
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();
            execution.requests.getFirst().cancel();

            senders.getFirst().sendError(new BackendException(ErrorCode.INTERNAL, "dropped"));
            senders.getFirst().complete();

            RecordingObserver observer = execution.observers.getFirst();
            assertThat(observer.failedResponses()).isEmpty();
            observer.assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
    }

    @Test
    void keepsInputsUsableUntilTheSenderIsEnded() {
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();

            assertThat(requests.getFirst().input("IN")).isPresent();
            send(senders.getFirst(), 1);
            senders.getFirst().complete();
            assertThatIllegalStateException()
                    .isThrownBy(() -> requests.getFirst().input("IN"));
            assertThat(execution.memory.buffersInUse()).as("the output").isEqualTo(1);
            execution.observers.getFirst().close();
            assertThat(execution.memory.buffersInUse()).isZero();
        }
    }

    @Test
    void dropsWhatFollowsTheEnd() {
        try (execution) {
            Execution.submit(execution, 1, 1);
            execution.run();
            ResponseSender sender = senders.get(0);
            InferenceResponse before = response(sender, 1);

            sender.fail(new BackendException(ErrorCode.UNAVAILABLE, "gone"));
            sender.send(before);
            sender.send(response(sender, 2));
            sender.complete(response(sender, 3));
            sender.complete();
            sender.fail(new BackendException(ErrorCode.INTERNAL, "again"));
            senders.get(1).complete();

            execution.observers.get(0).assertError(ErrorCode.UNAVAILABLE, "gone");
            assertThat(execution.observers.get(0).responses()).isEmpty();
        }
    }

    @Test
    void sendsNothingAfterCancellation() {
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();
            ResponseSender sender = senders.getFirst();

            send(sender, 1);
            execution.requests.getFirst().cancel();
            assertThat(sender.isCancelled()).isTrue();
            send(sender, 2);
            RecordingObserver observer = execution.observers.getFirst();
            assertThat(observer.hasEnded()).isFalse();
            sender.complete(response(sender, 3));

            assertThat(values(observer)).containsExactly(1f);
            observer.assertError(ErrorCode.CANCELLED, "request was cancelled");
        }
    }

    @Test
    void refusesResponsesThatAreNotItsOwnOrNotOpen() {
        try (execution) {
            Execution.submit(execution, 1, 1);
            execution.run();
            ResponseSender sender = senders.get(0);
            InferenceResponse discarded = response(sender, 1);
            discarded.discard();
            discarded.discard();
            InferenceResponse sent = response(sender, 2);
            sender.send(sent);
            InferenceResponse foreign = response(senders.get(1), 3);

            assertThatIllegalArgumentException().isThrownBy(() -> sender.send(discarded));
            assertThatIllegalArgumentException().isThrownBy(() -> sender.send(sent));
            assertThatIllegalArgumentException().isThrownBy(() -> sender.complete(foreign));

            foreign.discard();
            senders.forEach(ResponseSender::complete);
        }
    }

    @Test
    void leavesRequestsWithASenderToTheSenderWhenTheExecutionFails() {
        try (Execution failing = new Execution(model, batch -> {
            senders.add(batch.requests().getFirst().sender());
            throw new BackendException(ErrorCode.INTERNAL, "half way");
        })) {
            Execution.submit(failing, 1, 1);
            failing.run();

            assertThat(failing.observers.get(0).isSilent()).isTrue();
            failing.observers.get(1).assertError(ErrorCode.INTERNAL, "half way");
            senders.getFirst().complete();
            assertThat(failing.observers.get(0).hasEnded()).isTrue();
        }
    }

    @Test
    void endsARequestThatWasFailedAndItsSenderApart() {
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();

            requests.getFirst().fail(new BackendException(ErrorCode.NOT_FOUND, "nothing"));
            execution.observers.getFirst().assertError(ErrorCode.NOT_FOUND, "nothing");
            assertThat(execution.scheduler.inFlight()).isEqualTo(1);
            send(senders.getFirst(), 1);
            senders.getFirst().complete();
        }
    }

    @Test
    void completesRequestsOfABackendWithoutSender() {
        try (Execution whole = new Execution(model, batch -> {
                    assertThatIllegalStateException()
                            .isThrownBy(() -> batch.requests().getFirst().response());
                    batch.allocate("OUT", DataType.FP32, Shape.of(batch.size(), 1));
                });
                Execution nothing = new Execution(model, batch -> {})) {
            Execution.submit(whole, 1, 2);
            Execution.submit(nothing, 1);

            whole.run();
            nothing.run();

            assertThat(whole.observers.getFirst().response().isFinal()).isTrue();
            assertThat(nothing.observers.getFirst().responses()).isEmpty();
            assertThat(nothing.observers.getFirst().hasEnded()).isTrue();
        }
    }

    @Test
    @Timeout(60)
    void callsTheObserverSerially() {
        int threads = 4;
        int each = 500;
        try (execution) {
            Execution.submit(execution, 1);
            execution.run();
            ResponseSender sender = senders.getFirst();
            CountDownLatch sent = new CountDownLatch(threads);
            for (int i = 0; i < threads; i++) {
                Thread.startVirtualThread(() -> {
                    for (int n = 0; n < each; n++) {
                        send(sender, n);
                        sender.sendError(new BackendException(ErrorCode.INTERNAL, "no " + n));
                    }
                    sent.countDown();
                });
            }
            awaitAll(sent);
            sender.complete();

            RecordingObserver observer = execution.observers.getFirst().await();
            assertThat(observer.responses()).hasSize(threads * each);
            assertThat(observer.failedResponses()).hasSize(threads * each);
            observer.check();
        }
    }

    @Test
    @Timeout(60)
    void survivesAnEndWhileOthersStillSend() {
        for (int round = 0; round < 50; round++) {
            List<ResponseSender> taken = new ArrayList<>();
            try (Execution racing = new Execution(
                    model, batch -> taken.add(batch.requests().getFirst().sender()))) {
                Execution.submit(racing, 1);
                racing.run();
                ResponseSender sender = taken.getFirst();
                CountDownLatch done = new CountDownLatch(3);
                for (int i = 0; i < 2; i++) {
                    Thread.startVirtualThread(() -> {
                        for (int n = 0; n < 20; n++) {
                            send(sender, n);
                        }
                        done.countDown();
                    });
                }
                Thread.startVirtualThread(() -> {
                    sender.complete();
                    done.countDown();
                });
                awaitAll(done);
                racing.observers.getFirst().await();
            }
        }
    }

    private static void awaitAll(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void send(ResponseSender sender, float value) {
        sender.send(response(sender, value));
    }

    private static InferenceResponse response(ResponseSender sender, float value) {
        InferenceResponse response = sender.newResponse();
        try {
            response.allocate("OUT", DataType.FP32, Shape.of(1, 1)).data().set(ValueLayout.JAVA_FLOAT, 0, value);
        } catch (BackendException e) {
            throw new AssertionError(e);
        }
        return response;
    }

    private static List<Float> values(RecordingObserver observer) {
        return observer.responses().stream()
                .map(response -> response.outputs().getFirst().tensor().data().get(ValueLayout.JAVA_FLOAT, 0))
                .toList();
    }
}
