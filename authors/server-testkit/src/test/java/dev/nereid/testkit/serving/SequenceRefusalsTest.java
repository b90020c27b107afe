package dev.nereid.testkit.serving;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import dev.nereid.testkit.server.ReceivedResponses;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;

/** Requests of sequences that are refused with UNAVAILABLE: in the backlog for too long, or while the server stops. */
@Timeout(60)
final class SequenceRefusalsTest {
    private static final String EXPIRED = "timeout of the corresponding sequence has been expired";
    private static final String STOPPING =
            "Server is stopping, scheduler for model has stopped accepting new inference requests";
    private static final String CONFIG = GatedBackend.tensors(1, "FP32", "[ 1 ]") + """
            sequence_batching { direct { } max_sequence_idle_microseconds: 900000000 }
            instance_group { count: 1 kind: KIND_CPU }
            """;

    private final GatedBackend backend = new GatedBackend();

    @Test
    void aSequenceExpiresInTheBacklog() {
        try (LocalServer server = start()) {
            server.send(request(server, 1, true)).one();

            for (int id = 2; id <= 3; id++) {
                assertUnavailable(server.send(request(server, id, true).timeoutMicros(1000)), EXPIRED);
            }

            SequenceStatistics use = server.server().models().sequences().getFirst();
            assertThat(use.ended())
                    .containsOnlyKeys(SequenceEndReason.EXPIRED)
                    .containsEntry(SequenceEndReason.EXPIRED, 2L);
            assertThat(use.live()).isEqualTo(1);
            assertThat(use.backlog()).isZero();
            server.send(request(server, 1, false)).one(); // the other one goes on
        }
    }

    @Test
    void noSequenceStartsWhileTheServerStops() throws Exception {
        GatedBackend.Gate gate = backend.close("gated");
        try (LocalServer server = start()) {
            ReceivedResponses held = server.send(request(server, 1, true));
            gate.awaitExecution();
            CompletableFuture<Void> stopped = CompletableFuture.runAsync(server.server()::close);
            Eventually.holds("stopping", () -> !server.server().isLive());
            // one that starts before the model closes to requests waits in the backlog, until its timeout
            Eventually.holds(
                    "refusing",
                    () -> server.send(request(server, 4, true).timeoutMicros(1000))
                            .error()
                            .getMessage()
                            .endsWith(STOPPING));

            assertUnavailable(server.send(request(server, 2, true)), STOPPING);

            ReceivedResponses next = server.send(request(server, 1, false));
            Eventually.holds("one that goes on is accepted", () -> pending(server) == 1);
            gate.open();
            held.one();
            next.one();
            held.close();
            next.close();
            stopped.get(60, TimeUnit.SECONDS);
        }
    }

    private LocalServer start() {
        return LocalServer.with(backend).model("gated", CONFIG).start();
    }

    private static int pending(LocalServer server) {
        return server.server().models().statistics().getFirst().metrics().pending();
    }

    private static void assertUnavailable(ReceivedResponses received, String text) {
        BackendException error = received.error();
        assertThat(error).hasMessage(text);
        assertThat(error.code()).isEqualTo(ErrorCode.UNAVAILABLE);
    }

    private static ModelRequest request(LocalServer server, long id, boolean start) {
        return server.client()
                .request("gated")
                .input("INPUT0", Shape.of(1, 1), 1f)
                .sequence(Sequence.of(id, start, false));
    }
}
