package dev.nereid.grpc.service;

import static org.assertj.core.api.Assertions.assertThat;

import inference.GRPCInferenceServiceGrpc;
import inference.ServerLiveRequest;
import inference.ServerLiveResponse;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.Status;
import java.time.Duration;
import java.util.concurrent.ScheduledThreadPoolExecutor;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;

/** What becomes of delayed responses that nobody waits for any more. */
final class DelayedResponsesTest {
    private final ScheduledThreadPoolExecutor timer = new ScheduledThreadPoolExecutor(0);
    private final DelayedResponses delayed = new DelayedResponses(Duration.ofHours(1), timer);
    private final CancellableCall call = new CancellableCall();
    private final AtomicReference<ServerCall<ServerLiveRequest, ServerLiveResponse>> handled = new AtomicReference<>();
    private final ServerCall.Listener<ServerLiveRequest> listener =
            delayed.interceptCall(call, new Metadata(), (inner, _) -> {
                handled.set(inner);
                return new ServerCall.Listener<>() {};
            });

    @AfterEach
    void stop() {
        timer.shutdownNow();
    }

    private void cancel() {
        call.cancelled = true;
        listener.onCancel();
    }

    private void answer() {
        handled.get().sendHeaders(new Metadata());
        handled.get().sendMessage(ServerLiveResponse.getDefaultInstance());
        handled.get().close(Status.OK, new Metadata());
    }

    private long waiting() {
        timer.purge();
        return timer.getQueue().size();
    }

    @Test
    void waitsForTheTimeOfTheResponse() {
        answer();

        assertThat(waiting()).isOne();
    }

    @Test
    void keepsNothingThatWaitsOnceTheClientIsGone() {
        answer();
        cancel();

        assertThat(waiting()).isZero();
    }

    @Test
    void keepsNothingWaitingIfTheHandlerAnswersAfterTheClientIsGone() {
        cancel();
        answer();

        assertThat(waiting()).isZero();
    }

    @Test
    void keepsNothingWaitingIfTheClientGoesWhileTheHandlerAnswers() {
        call.asked = 1; // it is still there when the response is scheduled
        cancel();
        answer();

        assertThat(waiting()).isZero();
    }

    /** A call that a test cancels. */
    private static final class CancellableCall extends ServerCall<ServerLiveRequest, ServerLiveResponse> {
        private boolean cancelled;

        /** How many questions are answered as before the cancellation. */
        private int asked;

        @Override
        public void request(int count) {}

        @Override
        public void sendHeaders(Metadata headers) {}

        @Override
        public void sendMessage(ServerLiveResponse message) {}

        @Override
        public void close(Status status, Metadata trailers) {}

        @Override
        public boolean isCancelled() {
            return cancelled && asked-- <= 0;
        }

        @Override
        public MethodDescriptor<ServerLiveRequest, ServerLiveResponse> getMethodDescriptor() {
            return GRPCInferenceServiceGrpc.getServerLiveMethod();
        }
    }
}
