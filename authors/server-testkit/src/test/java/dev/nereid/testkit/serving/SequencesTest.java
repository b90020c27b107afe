package dev.nereid.testkit.serving;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Shape;
import dev.nereid.testkit.server.LocalServer;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Sequences of a server: what fits none, reloads of their model, and their statistics. */
@Timeout(60)
final class SequencesTest {
    private static final long TIMEOUT_SECONDS = 30;
    private static final String IDLE = "max_sequence_idle_microseconds: 900000000 ";
    private static final String DIRECT = SummingBackend.model(IDLE + "direct { }");
    private static final String OLDEST = SummingBackend.model(IDLE + """
            oldest { max_candidate_sequences: 1024 }
            control_input { name: "CORRID" control { kind: CONTROL_SEQUENCE_CORRID data_type: TYPE_UINT64 } }
            """);

    @TempDir
    private Path directory;

    @Test
    void refusesWhatFitsNoSequence() {
        try (LocalServer server = start()) {
            assertRefused(
                    request(server.server(), "sequence", 1).sequence(Sequence.of(8, false, false)),
                    "inference request for sequence 8 to model 'sequence' must specify the START flag on the first"
                            + " request of the sequence");
            String noId = "inference request to model 'sequence' must specify a non-zero or non-empty correlation ID";
            assertRefused(request(server.server(), "sequence", 1), noId);
            assertRefused(request(server.server(), "sequence", 1).sequence(Sequence.of(0, false, false)), noId);
            assertRefused(request(server.server(), "sequence", 1).sequence(Sequence.of("", false, false)), noId);
        }
    }

    @Test
    void refusesBatches() {
        try (LocalServer server = start()) {
            assertRefused(
                    server.client()
                            .request("dyna_sequence")
                            .input("INPUT", Shape.of(2, 1), 1, 2)
                            .sequence(Sequence.of(9, true, false)),
                    "inference request to model 'dyna_sequence' must specify batch-size 1 due to requirements of"
                            + " sequence batcher");
        }
    }

    @Test
    void idsHaveTheTypeOfTheControl() {
        try (LocalServer server = start()) {
            assertRefused(
                    request(server.server(), "dyna_sequence", 1).sequence(Sequence.of("a", true, false)),
                    "[request id: <id_unknown>] sequence batching control 'CORRID' data-type is 'BYTES', but model"
                            + " 'dyna_sequence' expects 'UINT64'");
        }
    }

    @Test
    void aSequenceStaysOnTheGenerationOnWhichItBegan() throws Exception {
        try (NereidServer server = explicit(DIRECT)) {
            assertThat(infer(server, 5, 1, true)).isEqualTo(5);
            for (int reload = 1; reload <= 4; reload++) { // the fourth ends the sequences of the first generation
                reload(server, reload);
                assertThat(infer(server, 100, 1 + reload, true)).isEqualTo(100);
                if (reload == 1) {
                    assertThat(infer(server, 1, 1, false)).isEqualTo(6);
                    assertThat(infer(server, 1, 2, false)).isEqualTo(101);
                }
            }
            assertThatThrownBy(() -> infer(server, 1, 1, false))
                    .hasMessage("inference request for sequence 1 to model 'sequence' must specify the START flag"
                            + " on the first request of the sequence");
            assertThat(infer(server, 1, 5, false)).isEqualTo(101);
            server.control().unload("sequence", false).toCompletableFuture().get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            Eventually.holds(
                    "unloaded at once",
                    () -> server.models().index().stream()
                            .allMatch(model -> model.state() == ModelStatus.State.UNAVAILABLE));
        }
    }

    @Test
    void sequencesAreCountedOverAReload() throws Exception {
        try (NereidServer server = explicit(DIRECT)) {
            infer(server, 1, 1, true);
            infer(server, 1, 2, true);
            infer(server, 1, Sequence.of(3, true, true));
            Eventually.holds("ended", () -> ended(server) == 1);
            SequenceStatistics use = use(server);
            assertThat(use.live()).isEqualTo(2);
            assertThat(use.backlog()).isZero();
            assertThat(use.slotsUsed()).isEqualTo(2);
            assertThat(use.slots()).isEqualTo(16);
            assertThat(use.ended()).doesNotContainKey(SequenceEndReason.IDLE);

            reload(server, 1);
            infer(server, 1, 4, true);
            assertThat(use(server).live()).isEqualTo(3);
            assertThat(use(server).slotsUsed()).isEqualTo(3);
            assertThat(ended(server)).isEqualTo(1);
            infer(server, 1, Sequence.of(1, false, true));
            infer(server, 1, Sequence.of(4, false, true));
            Eventually.holds("ended", () -> ended(server) == 3);
            assertThat(use(server).live()).isEqualTo(1);
        }
    }

    private static LocalServer start() {
        return LocalServer.with(new SummingBackend())
                .model("sequence", DIRECT)
                .model("dyna_sequence", OLDEST)
                .start();
    }

    /** Starts a server whose model can be changed. */
    private NereidServer explicit(String config) throws IOException, InterruptedException {
        Files.createDirectories(directory.resolve("sequence/1"));
        Files.writeString(directory.resolve("sequence/config.pbtxt"), config);
        return NereidServer.start(ServerOptions.of(directory).with(o -> {
            o.providers = List.of(new SummingBackend());
            o.explicit("sequence");
        }));
    }

    private void reload(NereidServer server, int number) throws Exception {
        Path config = directory.resolve("sequence/config.pbtxt");
        Files.writeString(
                config,
                Files.readString(config) + "parameters { key: \"p" + number + "\" value { string_value: \"x\" } }\n");
        server.control()
                .load(new ModelControl.Load("sequence", Optional.empty(), Map.of()))
                .toCompletableFuture()
                .get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    private static SequenceStatistics use(NereidServer server) {
        return server.models().sequences().getFirst();
    }

    private static long ended(NereidServer server) {
        return use(server).ended().getOrDefault(SequenceEndReason.END, 0L);
    }

    private static void assertRefused(ModelRequest request, String text) {
        assertThatThrownBy(request::sendAndWait)
                .isInstanceOfSatisfying(
                        BackendException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT))
                .hasMessage(text);
    }

    private static ModelRequest request(NereidServer server, String model, int value) {
        return server.client().request(model).input("INPUT", Shape.of(1, 1), value);
    }

    private static int infer(NereidServer server, int value, long id, boolean start) throws Exception {
        return infer(server, value, Sequence.of(id, start, false));
    }

    private static int infer(NereidServer server, int value, Sequence position) throws Exception {
        try (ModelResponse response =
                request(server, "sequence", value).sequence(position).sendAndWait()) {
            return response.requireOutput("OUTPUT").ints()[0];
        }
    }
}
