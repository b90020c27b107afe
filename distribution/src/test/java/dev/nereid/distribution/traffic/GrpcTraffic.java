package dev.nereid.distribution.traffic;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.errors.InvalidRequest;
import dev.nereid.distribution.testing.TestServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.TimeoutException;
import java.util.concurrent.atomic.AtomicInteger;

/** Sends requests over gRPC, on one channel. Confined to one thread. */
final class GrpcTraffic implements TrafficClient {
    private static final long TIMEOUT_SECONDS = 60;

    private final ManagedChannel channel;

    GrpcTraffic(TestServer server) {
        channel = server.grpc();
    }

    @Override
    public void perform(Traffic.Exchange exchange) throws InterruptedException {
        ClientCall<ModelInferRequest, ModelInferResponse> call =
                channel.newCall(GRPCInferenceServiceGrpc.getModelInferMethod(), CallOptions.DEFAULT);
        Listener listener = new Listener();
        call.start(listener, new Metadata());
        call.request(2);
        call.sendMessage(exchange.request().overGrpc());
        switch (exchange.behavior()) {
            case WAITING -> {
                call.halfClose();
                check(exchange, listener.await());
            }
            case LEAVING_EARLY -> {
                call.cancel("left early", null);
                assertThat(listener.await().status().getCode()).isEqualTo(Status.Code.CANCELLED);
            }
            case LEAVING_LATE -> {
                call.halfClose();
                call.cancel("left late", null);
                assertThat(listener.await().status().getCode()).isEqualTo(Status.Code.CANCELLED);
            }
        }
    }

    private static void check(Traffic.Exchange exchange, End end) {
        switch (exchange.expected()) {
            case Traffic.Expected.Outputs(byte[][] outputs) -> checkOutputs(exchange, end, outputs);
            case Traffic.Expected.Refusal(var code, String text) -> {
                assertThat(end.status().getDescription()).isEqualTo(text);
                assertThat(end.status().getCode())
                        .isEqualTo(InvalidRequest.grpc("", ModelInferRequest.getDefaultInstance(), code, text)
                                .grpc()
                                .orElseThrow()
                                .status());
            }
            case Traffic.Expected.OutputsOrNotReady(Traffic.Expected.Outputs(byte[][] outputs)) -> {
                if (end.status().isOk()) {
                    checkOutputs(exchange, end, outputs);
                } else {
                    assertThat(end.status().getCode()).isEqualTo(Status.Code.NOT_FOUND);
                    assertThat(end.status().getDescription())
                            .startsWith("Request for unknown model: '"
                                    + exchange.request().model() + "'");
                }
            }
        }
    }

    private static void checkOutputs(Traffic.Exchange exchange, End end, byte[][] outputs) {
        assertThat(end.status().isOk()).as(end.status().toString()).isTrue();
        assertThat(end.messages()).isOne();
        assertThat(end.last().getId()).isEqualTo(exchange.request().id());
        assertThat(end.last().getRawOutputContentsCount()).isEqualTo(outputs.length);
        for (int i = 0; i < outputs.length; i++) {
            assertThat(end.last().getRawOutputContents(i).toByteArray()).isEqualTo(outputs[i]);
        }
    }

    @Override
    public void close() {
        channel.shutdown();
        try {
            assertThat(channel.awaitTermination(TIMEOUT_SECONDS, TimeUnit.SECONDS))
                    .isTrue();
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        }
    }

    /**
     * The end of a call.
     *
     * @param status its status
     * @param messages the number of received messages
     * @param last the last of them
     */
    private record End(Status status, int messages, ModelInferResponse last) {}

    /** Waits for the end of a call. Safe for use by any thread. */
    private static final class Listener extends ClientCall.Listener<ModelInferResponse> {
        private final CompletableFuture<End> end = new CompletableFuture<>();
        private final AtomicInteger messages = new AtomicInteger();
        private volatile ModelInferResponse last = ModelInferResponse.getDefaultInstance();

        @Override
        public void onMessage(ModelInferResponse message) {
            last = message;
            messages.incrementAndGet();
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            assertThat(end.complete(new End(status, messages.get(), last))).isTrue();
        }

        End await() throws InterruptedException {
            try {
                return end.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            } catch (ExecutionException | TimeoutException e) {
                throw new AssertionError("no response", e);
            }
        }
    }
}
