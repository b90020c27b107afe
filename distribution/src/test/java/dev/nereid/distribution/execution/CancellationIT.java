package dev.nereid.distribution.execution;

import static dev.nereid.distribution.testing.TensorBytes.floats;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import com.google.protobuf.Struct;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ServerLiveRequest;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests clients that cancel while the only instance of a model is busy. Queued requests are cancelled at once and never
 * executed, executing ones are counted as cancelled, and requests queued behind them complete.
 */
@Timeout(120)
class CancellationIT {
    private static final long DEADLINE_MILLIS = 500;

    @TempDir
    private Path directory;

    @Test
    void neverExecutesCancelledRequests() throws Exception {
        Repository models = new Repository(directory.resolve("models")).model("gated", GatedPlugin.model());
        Path gate = GatedPlugin.close(models, "gated", "execute");
        Path plugins = GatedPlugin.pack(directory.resolve("plugins"));
        try (TestServer server =
                        TestServer.open(NereidServer.start(TestServer.of(models).withPlugins(plugins)));
                HttpConnection executed = server.http();
                HttpConnection waiting = server.http();
                HttpConnection remaining = server.http();
                HttpConnection watcher = server.http()) {
            ManagedChannel channel = server.grpc();
            connect(channel);
            send(executed, 1);
            Eventually.holds("held", 30, () -> GatedPlugin.isWaitedAt(gate));
            send(waiting, 2);
            StatusRuntimeException late = catchThrowableOfType(
                    StatusRuntimeException.class,
                    () -> GRPCInferenceServiceGrpc.newBlockingStub(channel)
                            .withDeadlineAfter(DEADLINE_MILLIS, TimeUnit.MILLISECONDS)
                            .modelInfer(infer(3).overGrpc()));
            assertThat(late.getStatus().getCode()).isEqualTo(Status.Code.DEADLINE_EXCEEDED);
            send(remaining, 4);
            waiting.abandon();

            // Both have completed and are counted while the instance is still busy with the first request.
            Eventually.holds("two cancelled", 30, () -> count(watcher, "fail") == 2);
            executed.abandon();
            GatedPlugin.open(gate);

            assertThat(remaining.read().binaryOutputs()).containsEntry("OUTPUT0", floats(4));
            Eventually.holds("executed two", 30, () -> count(watcher, "fail") + count(watcher, "success") == 4);
            assertThat((int) statistics(watcher)
                            .getFieldsOrThrow("execution_count")
                            .getNumberValue())
                    .isLessThanOrEqualTo(2);
            Eventually.holds(
                    "no memory in use", 10, () -> server.server().memory().bytesInUse() == 0);
            channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        }
    }

    /** Sees to it that no deadline passes on the way. */
    private static void connect(ManagedChannel channel) {
        assertThat(GRPCInferenceServiceGrpc.newBlockingStub(channel)
                        .serverLive(ServerLiveRequest.getDefaultInstance())
                        .getLive())
                .isTrue();
    }

    private static ClientRequest infer(int value) {
        return ClientRequest.of("gated").input("INPUT0", "FP32", floats(value), 1, 1);
    }

    private static void send(HttpConnection client, int value) throws IOException {
        byte[] request = infer(value).overHttp();
        client.send(request, 0, request.length);
    }

    private static int count(HttpConnection client, String outcome) {
        return (int) statistics(client)
                .getFieldsOrThrow("inference_stats")
                .getStructValue()
                .getFieldsOrThrow(outcome)
                .getStructValue()
                .getFieldsOrThrow("count")
                .getNumberValue();
    }

    private static Struct statistics(HttpConnection client) {
        try {
            return client.exchange(HttpRequests.get("/v2/models/gated/stats"))
                    .json()
                    .getFieldsOrThrow("model_stats")
                    .getListValue()
                    .getValues(0)
                    .getStructValue();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
