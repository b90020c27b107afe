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

/** Tests delayed responses whose client has cancelled the call. */
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

    private void respond() {
        handled.get().sendHeaders(new Metadata());
        handled.get().sendMessage(ServerLiveResponse.getDefaultInstance());
        handled.get().close(Status.OK, new Metadata());
    }

    private long waiting() {
        timer.purge();
        return timer.getQueue().size();
    }

    @Test
    void schedulesTheResponse() {
        respond();

        assertThat(waiting()).isOne();
    }

    @Test
    void dropsADelayedResponseIfTheClientCancels() {
        respond();
        cancel();

        assertThat(waiting()).isZero();
    }

    @Test
    void schedulesNothingAfterTheClientHasCancelled() {
        cancel();
        respond();

        assertThat(waiting()).isZero();
    }

    @Test
    void dropsADelayedResponseIfTheClientCancelsMeanwhile() {
        call.staleQueries = 1; // not cancelled yet when the response is scheduled
        cancel();
        respond();

        assertThat(waiting()).isZero();
    }

    /** A call that a test cancels. */
    private static final class CancellableCall extends ServerCall<ServerLiveRequest, ServerLiveResponse> {
        private boolean cancelled;

        /** The number of queries that still report no cancellation. */
        private int staleQueries;

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
            return cancelled && staleQueries-- <= 0;
        }

        @Override
        public MethodDescriptor<ServerLiveRequest, ServerLiveResponse> getMethodDescriptor() {
            return GRPCInferenceServiceGrpc.getServerLiveMethod();
        }
    }
}
