package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.GatedPlugin;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelInferRequest;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;

/** Requests of sequences that are refused with UNAVAILABLE: in the backlog for too long, or while the server stops. */
@Timeout(120)
class SequenceRefusalsIT {
    private static final int SECONDS = 60;
    private static final String EXPIRED = "timeout of the corresponding sequence has been expired";
    private static final String STOPPING =
            "Server is stopping, scheduler for model has stopped accepting new inference requests";

    @TempDir
    private Path directory;

    private Repository models;

    @RegisterExtension
    private final ServerExtension server = new ServerExtension(this::options);

    private ServerOptions options() {
        models = new Repository(directory.resolve("models"))
                .model("gated", Repository.identity(1, "FP32", "[ 1 ]", """
                                        sequence_batching { direct { } max_sequence_idle_microseconds: 900000000 }
                                        instance_group { count: 1 kind: KIND_CPU }
                                        """).replace("\"identity\"", "\"gated\""));
        return TestServer.of(models).withPlugins(GatedPlugin.pack(directory.resolve("plugins")));
    }

    @Test
    void aSequenceExpiresInTheBacklog() throws Exception {
        assertThat(server.connection().exchange(request(1, true).overHttp()).status())
                .isEqualTo(200);

        RawHttpResponse overHttp = server.connection()
                .exchange(HttpRequests.post(
                        "/v2/models/gated/infer",
                        ("{\"parameters\":{\"sequence_id\":2,\"sequence_start\":true,\"timeout\":1000},\"inputs\":[{\"name\":"
                                        + "\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,1],\"data\":[1]}]}")
                                .getBytes(StandardCharsets.UTF_8)));
        assertThat(overHttp.error()).isEqualTo(EXPIRED);
        assertThat(overHttp.status()).isEqualTo(503);
        ModelInferRequest timed = request(3, true).overGrpc().toBuilder()
                .putParameters(
                        "timeout",
                        InferParameter.newBuilder().setInt64Param(1000).build())
                .build();
        assertUnavailable(timed, EXPIRED);

        SequenceStatistics use = server.server().models().sequences().getFirst();
        assertThat(use.ended())
                .containsOnlyKeys(SequenceEndReason.EXPIRED)
                .containsEntry(SequenceEndReason.EXPIRED, 2L);
        assertThat(use.live()).isEqualTo(1);
        assertThat(use.backlog()).isZero();
        assertThat(server.connection().exchange(request(1, false).overHttp()).status())
                .as("the other one goes on")
                .isEqualTo(200);
    }

    @Test
    void noSequenceStartsWhileTheServerStops() throws Exception {
        Path gate = GatedPlugin.close(models, "gated", "execute");
        try (HttpConnection first = server.http();
                HttpConnection probe = server.http()) {
            byte[] held = request(1, true).overHttp();
            first.send(held, 0, held.length);
            Eventually.holds("held", SECONDS, () -> GatedPlugin.isWaitedAt(gate));
            CompletableFuture<Void> stopped = CompletableFuture.runAsync(server.server()::close);
            Eventually.holds("stopping", SECONDS, () -> !server.server().isLive());
            // one that starts before the model closes to requests waits in the backlog, until the time is over
            byte[] early = HttpRequests.post(
                    "/v2/models/gated/infer",
                    ("{\"parameters\":{\"sequence_id\":4,\"sequence_start\":true,\"timeout\":1000},\"inputs\":[{\"name\":"
                                    + "\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1,1],\"data\":[1]}]}")
                            .getBytes(StandardCharsets.UTF_8));
            Eventually.holds("refusing", SECONDS, () -> error(probe, early).endsWith(STOPPING));

            RawHttpResponse overHttp =
                    server.connection().exchange(request(2, true).overHttp());
            assertThat(overHttp.error()).isEqualTo(STOPPING);
            assertThat(overHttp.status()).isEqualTo(503);
            assertUnavailable(request(3, true).overGrpc(), STOPPING);

            byte[] next = request(1, false).overHttp();
            probe.send(next, 0, next.length);
            Eventually.holds("one that goes on is accepted", SECONDS, () -> pending() == 1);
            GatedPlugin.open(gate);
            assertThat(first.read().status()).isEqualTo(200);
            assertThat(probe.read().status()).isEqualTo(200);
            stopped.get(SECONDS, TimeUnit.SECONDS);
        }
    }

    private static String error(HttpConnection connection, byte[] request) {
        try {
            return connection.exchange(request).error();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private int pending() {
        return server.server().models().statistics().getFirst().metrics().pending();
    }

    private void assertUnavailable(ModelInferRequest request, String text) {
        StatusRuntimeException failure = catchThrowableOfType(
                StatusRuntimeException.class,
                () -> GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                        .withDeadlineAfter(SECONDS, TimeUnit.SECONDS)
                        .modelInfer(request));
        assertThat(failure.getStatus().getDescription()).isEqualTo(text);
        assertThat(failure.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
    }

    private static ClientRequest request(long id, boolean start) {
        return ClientRequest.of("gated")
                .input("INPUT0", "FP32", TensorBytes.floats(1), 1, 1)
                .inSequence(id, start, false);
    }
}
