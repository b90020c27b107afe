package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.floats;
import static dev.nereid.grpc.testing.TestFrontend.request;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import io.grpc.CallOptions;
import io.grpc.ClientCall;
import io.grpc.Metadata;
import io.grpc.Status;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Tests that unread responses stay in use until read or cancelled. */
@Timeout(60)
final class UnreadResponseIT {
    /** Much more than the windows of a connection. */
    private static final int LARGE = 4 << 20;

    private TestFrontend frontend;

    @BeforeEach
    void start() {
        frontend = new TestFrontend();
        frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
    }

    @AfterEach
    void stop() {
        frontend.close();
    }

    @Test
    void keepsALargeResponseUntilTheClientHasReceivedIt() throws Exception {
        Unread unread = new Unread(LARGE);
        ReceivedRequest call = served();
        assertThat(call.openResponses()).isEqualTo(1);
        assertThat(unread.end).isNotDone();

        unread.call.request(2);

        assertThat(unread.end.get(20, TimeUnit.SECONDS).isOk()).isTrue();
        TestFrontend.await(() -> call.openResponses() == 0);
    }

    @Test
    void closesTheResponseOfACancelledCall() throws Exception {
        Unread unread = new Unread(LARGE);
        ReceivedRequest call = served();
        assertThat(call.openResponses()).isEqualTo(1);

        unread.call.cancel("enough", null);

        assertThat(unread.end.get(20, TimeUnit.SECONDS).getCode()).isEqualTo(Status.Code.CANCELLED);
        TestFrontend.await(() -> call.openResponses() == 0);
    }

    @Test
    void closesASmallResponseAtOnce() throws Exception {
        Unread unread = new Unread(16);
        ReceivedRequest call = served();

        TestFrontend.await(() -> call.openResponses() == 0);
        unread.call.request(2);

        assertThat(unread.end.get(20, TimeUnit.SECONDS).isOk()).isTrue();
    }

    /** Waits until the model has responded, and another client was served after it on the same event loop. */
    private ReceivedRequest served() {
        TestFrontend.await(() -> !frontend.server.requests().isEmpty());
        ReceivedRequest call = frontend.server.requests().getFirst();
        assertThat(frontend.client
                        .modelInfer(request("m", "FP32", floats(1), 1).build())
                        .getOutputsCount())
                .isEqualTo(1);
        return call;
    }

    /** A call whose response is not read until the test requests it. Safe for use by any thread. */
    private final class Unread extends ClientCall.Listener<ModelInferResponse> {
        final ClientCall<ModelInferRequest, ModelInferResponse> call;
        final CompletableFuture<Status> end = new CompletableFuture<>();

        Unread(int byteSize) {
            call = frontend.channel.newCall(GRPCInferenceServiceGrpc.getModelInferMethod(), CallOptions.DEFAULT);
            call.start(this, new Metadata());
            int count = byteSize / Float.BYTES;
            call.sendMessage(
                    request("m", "FP32", floats(new float[count]), count).build());
            call.halfClose();
        }

        @Override
        public void onClose(Status status, Metadata trailers) {
            end.complete(status);
        }
    }
}
