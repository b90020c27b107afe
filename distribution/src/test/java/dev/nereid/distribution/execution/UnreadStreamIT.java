package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelStreamInferResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.ManagedChannel;
import io.grpc.Metadata;
import io.grpc.Status;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests streams whose responses are read late or never. Their model is decoupled and has one instance. */
final class UnreadStreamIT {
    /** Maximum wait of another client; a slow stream once delayed others for longer. */
    private static final long TIMEOUT_SECONDS = 20;

    private TestServer server;
    private ManagedChannel channel;

    @BeforeEach
    void start() throws IOException, InterruptedException {
        server = TestServer.open(
                NereidServer.start(ServerOptions.of(TestPaths.checkout().resolve("examples/plugin-models"))
                        .withPlugins(TestPaths.plugins())));
        channel = server.grpc();
    }

    @AfterEach
    void stop() throws InterruptedException {
        channel.shutdownNow();
        assertThat(channel.awaitTermination(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isTrue();
        Eventually.holds(
                "no memory in use",
                TIMEOUT_SECONDS,
                () -> server.server().memory().bytesInUse() == 0);
        server.close();
    }

    @Test
    void leavesTheModelToOthers() throws Exception {
        Stream unread = new Stream(channel, Integer.MAX_VALUE);
        unread.awaitBegin();
        Stream other = new Stream(channel, 3);
        other.call.request(4);

        assertThat(other.end()).isEqualTo(Status.OK);
        assertThat(other.responses.get()).isEqualTo(3);
        unread.call.request(Integer.MAX_VALUE);
        Status end = unread.end();
        assertThat(end.getCode()).isEqualTo(Status.Code.UNAVAILABLE);
        assertThat(end.getDescription()).startsWith("the client reads the stream too slowly: ");
    }

    @Test
    void keepsWhatIsReadLate() throws Exception {
        int count = 50_000;
        Stream late = new Stream(channel, count);
        late.awaitBegin();
        Stream other = new Stream(channel, 3);
        other.call.request(4);
        assertThat(other.end()).isEqualTo(Status.OK);

        late.call.request(count + 1);

        assertThat(late.end()).isEqualTo(Status.OK);
        assertThat(late.responses.get()).isEqualTo(count);
    }

    /** A stream with one request for a given number of responses. None of them is read until the call requests them. */
    private static final class Stream extends ClientCall.Listener<ModelStreamInferResponse> {
        final AtomicInteger responses = new AtomicInteger();
        final ClientCall<ModelInferRequest, ModelStreamInferResponse> call;
        private final CompletableFuture<Metadata> begin = new CompletableFuture<>();
        private final CompletableFuture<Status> end = new CompletableFuture<>();

        Stream(ManagedChannel channel, int count) {
            call = channel.newCall(GRPCInferenceServiceGrpc.getModelStreamInferMethod(), CallOptions.DEFAULT);
            call.start(this, new Metadata());
            ModelInferRequest.Builder request = ModelInferRequest.newBuilder().setModelName("square");
            request.addInputsBuilder().setName("IN").setDatatype("INT32").addShape(1);
            request.addRawInputContents(ByteString.copyFrom(ByteBuffer.allocate(Integer.BYTES)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putInt(count)
                    .flip()));
            call.sendMessage(request.build());
            call.halfClose();
        }

        @Override
        public void onHeaders(Metadata headers) {
            begin.complete(headers);
        }

        @Override
        public void onMessage(ModelStreamInferResponse message) {
            responses.incrementAndGet();
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            end.complete(status);
        }

        /** Waits until the model responds. */
        void awaitBegin() throws Exception {
            begin.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }

        Status end() throws Exception {
            return end.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
    }
}
