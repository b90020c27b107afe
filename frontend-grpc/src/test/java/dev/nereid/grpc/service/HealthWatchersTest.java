package dev.nereid.grpc.service;

import static io.grpc.health.v1.HealthCheckResponse.ServingStatus.NOT_SERVING;
import static io.grpc.health.v1.HealthCheckResponse.ServingStatus.SERVING;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.grpc.connection.Parsed;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import io.grpc.ServerCall;
import io.grpc.Status;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthCheckResponse;
import io.grpc.health.v1.HealthCheckResponse.ServingStatus;
import io.grpc.health.v1.HealthGrpc;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.Test;

final class HealthWatchersTest {
    @AutoClose
    private final ExecutorService timer = Executors.newSingleThreadExecutor();

    private volatile ServingStatus status = SERVING;
    private volatile boolean isBroken;

    private final HealthWatchers watchers = new HealthWatchers(
            service -> {
                if (isBroken && service.equals("broken")) {
                    throw new IllegalStateException("no status today");
                }
                return status;
            },
            timer);

    /** A call without network that records what is written, and can fail to write. */
    private static final class Call
            extends ServerCall<Parsed<ControlRequest<HealthCheckRequest>>, HealthCheckResponse> {
        private final BlockingQueue<ServingStatus> statuses = new LinkedBlockingQueue<>();
        private volatile boolean isBroken;

        ServingStatus next() throws InterruptedException {
            return statuses.poll(20, TimeUnit.SECONDS);
        }

        @Override
        public void request(int count) {}

        @Override
        public void sendHeaders(Metadata headers) {}

        @Override
        public void sendMessage(HealthCheckResponse message) {
            if (isBroken) {
                throw new IllegalStateException("call is closed");
            }
            statuses.add(message.getStatus());
        }

        @Override
        public void close(Status result, Metadata trailers) {}

        @Override
        public boolean isCancelled() {
            return false;
        }

        @Override
        public MethodDescriptor<Parsed<ControlRequest<HealthCheckRequest>>, HealthCheckResponse> getMethodDescriptor() {
            throw new UnsupportedOperationException("the method does not matter");
        }
    }

    private Call watch(String service) throws InterruptedException {
        Call call = new Call();
        ServerCall.Listener<Parsed<ControlRequest<HealthCheckRequest>>> listener =
                watchers.startCall(call, new Metadata());
        listener.onMessage(new Parsed.Ok<>(ControlRequest.of(
                HealthCheckRequest.newBuilder().setService(service).build().toByteArray(),
                HealthGrpc.getWatchMethod())));
        listener.onHalfClose();
        assertThat(call.next()).isEqualTo(SERVING);
        return call;
    }

    @Test
    void sendsToTheOthersIfAStatusLookupFails() throws InterruptedException {
        Call broken = watch("broken");
        Call good = watch("good");

        isBroken = true;
        status = NOT_SERVING;
        assertThat(good.next()).isEqualTo(NOT_SERVING);
        isBroken = false;

        assertThat(broken.next()).isEqualTo(NOT_SERVING);
    }

    @Test
    void sendsToTheOthersIfACallCannotBeWrittenTo() throws InterruptedException {
        Call broken = watch("a");
        Call good = watch("b");
        broken.isBroken = true;

        status = NOT_SERVING;
        assertThat(good.next()).isEqualTo(NOT_SERVING);
        status = SERVING;
        assertThat(good.next()).isEqualTo(SERVING);
    }

    @Test
    void endsTheOthersIfACallCannotBeWrittenTo() throws InterruptedException {
        Call broken = watch("a");
        Call good = watch("b");
        broken.isBroken = true;

        watchers.stop();

        assertThat(good.next()).isEqualTo(NOT_SERVING);
    }
}
