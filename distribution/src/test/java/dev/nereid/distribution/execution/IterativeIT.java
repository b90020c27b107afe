package dev.nereid.distribution.execution;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.ModelStatus;
import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.distribution.testing.Texts;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelStatisticsRequest;
import io.grpc.ManagedChannel;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Requests that are executed step by step, whose clients stop to read; they go on over a reload and an unload. */
@Timeout(120)
class IterativeIT {
    /** More than the network and the server hold. */
    private static final int COUNT = 20_000;

    private static final int SECONDS = 30;
    private static final long QUIET_NANOS = TimeUnit.MILLISECONDS.toNanos(300);

    @TempDir
    private static Path directory;

    private static Repository models;

    @RegisterExtension
    private static final ServerExtension server = new ServerExtension(IterativeIT::options);

    private static ManagedChannel small;

    private static ServerOptions options() {
        models = new Repository(directory.resolve("models")).model("stepping", Texts.model("a", ends()));
        return TestServer.of(models)
                .withPlugins(Texts.pack(directory.resolve("plugins")))
                .with(o -> o.explicit());
    }

    @BeforeAll
    static void connect() {
        small = Texts.channel("127.0.0.1:" + server.grpcPort());
    }

    @BeforeEach
    void load() throws IOException {
        load("a");
    }

    @AfterEach
    void everythingIsFree() {
        Eventually.holds("no sequence", SECONDS, () -> texts().live() == 0);
        assertThat(texts().slotsUsed()).isZero();
        assertThat(texts().stateBytes()).isZero();
    }

    @AfterAll
    static void disconnect() throws InterruptedException {
        small.shutdownNow().awaitTermination(SECONDS, TimeUnit.SECONDS);
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aRequestIsNotExecutedWhileItsClientDoesNotRead(boolean overGrpc) throws Exception {
        long before = steps();
        try (Texts slow = send(overGrpc, COUNT)) {
            long paused = awaitPause(before);
            assertThat(texts().slotsUsed()).isEqualTo(1);
            assertThat(texts().stateBytes()).isEqualTo(Integer.BYTES);
            for (boolean other : new boolean[] {false, true}) {
                try (Texts quick = send(other, 50)) {
                    assertThat(quick.readAll()).isEqualTo(Texts.complete(50, "a"));
                }
            }
            assertThat(steps()).as("those of the others alone").isEqualTo(paused + 2 * 50);
            assertThat(paused - before).isLessThan(COUNT);

            assertThat(slow.readAll()).isEqualTo(Texts.complete(COUNT, "a"));
            assertThat(steps()).isEqualTo(before + COUNT + 2 * 50);
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aPausedClientThatLeavesFreesItsSlot(boolean overGrpc) throws Exception {
        long cancelled = texts().ended().getOrDefault(SequenceEndReason.CANCELLED, 0L);
        int told = told().size();
        long before = steps();
        Texts slow = send(overGrpc, COUNT);
        try (slow) {
            awaitPause(before);
        }
        everythingIsFree();
        assertThat(texts().ended()).containsEntry(SequenceEndReason.CANCELLED, cancelled + 1);
        Eventually.holds("the backend is notified", SECONDS, () -> told().size() > told);
        assertThat(told().subList(told, told().size())).containsExactly("CANCELLED");
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aRequestGoesOnWhileItsModelIsReloaded(boolean overGrpc) throws Exception {
        long before = steps();
        try (Texts old = send(overGrpc, COUNT)) {
            awaitPause(before);
            load("b");
            try (Texts fresh = send(overGrpc, 50)) {
                assertThat(fresh.readAll()).isEqualTo(Texts.complete(50, "b"));
            }
            // A request's last response is sent before its sequence ends.
            Eventually.holds("the new one has ended", SECONDS, () -> texts().live() == 1);
            assertThat(old.readAll()).isEqualTo(Texts.complete(COUNT, "a"));
        }
    }

    @ParameterizedTest
    @ValueSource(booleans = {false, true})
    void aRequestGoesOnWhileItsModelIsUnloaded(boolean overGrpc) throws Exception {
        long before = steps();
        try (Texts old = send(overGrpc, COUNT)) {
            awaitPause(before);
            assertThat(post("/v2/repository/models/stepping/unload").status()).isEqualTo(200);
            try (Texts refused = send(overGrpc, 50)) {
                assertThat(refused.readAll())
                        .singleElement()
                        .asString()
                        .contains("Request for unknown model: 'stepping' has no available versions");
            }
            assertThat(isUnloaded()).isFalse();
            assertThat(old.readAll()).isEqualTo(Texts.complete(COUNT, "a"));
        }
        Eventually.holds("unloaded", SECONDS, IterativeIT::isUnloaded);
        load("a");
    }

    private static Texts send(boolean overGrpc, int count) throws IOException {
        return overGrpc ? Texts.overGrpc(small, count) : Texts.overHttp(server.httpPort(), count);
    }

    private static Path ends() {
        return directory.resolve("ends");
    }

    /** Returns the reasons that the backend got. */
    private static List<String> told() {
        try {
            return Files.exists(ends()) ? Files.readAllLines(ends()) : List.of();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private static void load(String label) throws IOException {
        models.model("stepping", Texts.model(label, ends()));
        assertThat(post("/v2/repository/models/stepping/load").status()).isEqualTo(200);
    }

    private static RawHttpResponse post(String path) throws IOException {
        return server.connection().exchange(HttpRequests.post(path, "{}".getBytes(UTF_8)));
    }

    private static boolean isUnloaded() {
        return server.server().models().index().stream()
                .allMatch(model -> model.state() == ModelStatus.State.UNAVAILABLE);
    }

    private static SequenceStatistics texts() {
        return server.server().models().sequences().getFirst();
    }

    /** Returns how many steps were executed. */
    private static long steps() {
        return GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                .modelStatistics(
                        ModelStatisticsRequest.newBuilder().setName("stepping").build())
                .getModelStats(0)
                .getBatchStatsList()
                .stream()
                .mapToLong(
                        batch -> batch.getBatchSize() * batch.getComputeInfer().getCount())
                .sum();
    }

    /** Waits until there are steps, and no more; returns how many. */
    private static long awaitPause(long before) {
        long[] last = {before, System.nanoTime()};
        Eventually.holds("a pause", SECONDS, () -> {
            long now = System.nanoTime();
            long steps = steps();
            if (steps != last[0]) {
                last[0] = steps;
                last[1] = now;
            }
            return steps > before && now - last[1] > QUIET_NANOS;
        });
        return last[0];
    }
}
