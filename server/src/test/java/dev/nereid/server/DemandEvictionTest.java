package dev.nereid.server;

import static dev.nereid.server.DemandFixture.await;
import static dev.nereid.server.DemandFixture.infer;
import static dev.nereid.server.DemandFixture.pause;
import static dev.nereid.server.DemandFixture.request;
import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.statistics.DemandStatistics;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.Random;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** A server that evicts models. See {@code PlanningTest} for what is evicted. */
@Timeout(120)
final class DemandEvictionTest {
    @TempDir
    private Path directory;

    private DemandFixture fixture;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        fixture = DemandFixture.in(directory);
        models = fixture.models();
    }

    @Test
    void evictsTheLeastRecentlyUsedModel() throws Exception {
        for (String name : List.of("a", "b", "c")) {
            models.recording(name, DemandFixture.MEGABYTE);
        }
        try (NereidServer server = fixture.start(2_000_000)) {
            infer(server, "a", 1);
            infer(server, "b", 1);
            pause();
            infer(server, "a", 1);
            infer(server, "c", 1);

            await(() -> fixture.events().contains("close b/1"));
            assertThat(fixture.events()).contains("close b/1").doesNotContain("close a/1");
            assertThat(TestControl.index(server)).containsExactly("a 1 READY", "b 1 READY", "c 1 READY");
            assertThat(server.models().isReady(ModelRef.latest("b"))).isTrue();
            assertThat(server.isReady()).isTrue();
            assertThat(infer(server, "b", 2)).containsExactly(2f);
        }
    }

    @Test
    void neverEvictsAModelInUse() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("a", DemandFixture.MEGABYTE + parameter("gate", gate.toString()) + parameter("record", ""));
        models.recording("b", DemandFixture.MEGABYTE);
        try (NereidServer server = fixture.start(1_000_000)) {
            RecordingObserver running = RecordingObserver.to(server, "a", 1);
            await(() -> fixture.events().contains("execute 1 on a_0_0"));
            RecordingObserver waiting = RecordingObserver.to(server, "b", 2);
            await(() -> server.demand().orElseThrow().waiting() == 1);
            assertThat(fixture.events()).doesNotContain("close a/1", "load b/1 on [cpu]");

            Files.delete(gate);

            assertThat(running.response().values()).containsExactly(1f);
            assertThat(waiting.response().values()).containsExactly(2f);
            assertThat(fixture.events()).containsSubsequence("execute 1 on a_0_0", "close a/1", "load b/1 on [cpu]");
        }
    }

    @Test
    void keepsPinnedModelsLoaded() throws Exception {
        models.recording("a", DemandFixture.MEGABYTE)
                .recording("b", DemandFixture.MEGABYTE + parameter("nereid.pinned", "true"));
        models.recording("c", DemandFixture.MEGABYTE).recording("d", DemandFixture.MEGABYTE);
        try (NereidServer server = fixture.start(3_000_000, "a")) {
            assertThat(fixture.loads()).containsExactlyInAnyOrder("load a/1 on [cpu]", "load b/1 on [cpu]");

            infer(server, "c", 1);
            infer(server, "d", 1);
            infer(server, "c", 1);

            assertThat(fixture.events()).contains("close c/1", "close d/1").doesNotContain("close a/1", "close b/1");
            assertThat(server.demand().orElseThrow().memory()).containsOnlyKeys("a", "b", "c");
        }
    }

    @Test
    void reportsAPinnedModelThatIsMissingOrTooLarge() throws Exception {
        models.recording("a", "");
        for (String name : List.of("a", "missing")) {
            ServerOptions options = fixture.options(o -> o.memoryBudget = 1000, name);
            assertThatThrownBy(() -> NereidServer.start(options))
                    .isInstanceOf(InferenceException.class)
                    .hasMessageContaining(name);
        }
    }

    @Test
    void refusesAModelThatIsLargerThanTheBudget() throws Exception {
        models.recording("m", "");
        try (NereidServer server = fixture.start(1000)) {
            assertThat(RecordingObserver.to(server, "m", 1).error().publicMessage())
                    .isEqualTo("model 'm' cannot be loaded: 524288 bytes of memory, but the budget leaves 1000 bytes"
                            + " beside pinned models (expected: a larger --model-memory-budget)");
            assertThat(fixture.loads()).isEmpty();
        }
    }

    @Test
    void keepsWhatAClientHasSent() throws Exception {
        models.recording("a", DemandFixture.MEGABYTE)
                .recording("b", DemandFixture.MEGABYTE)
                .recording("c", DemandFixture.MEGABYTE);
        String config = "{\"backend\":\"recording\",\"max_batch_size\":8,\"parameters\":{\"memory_bytes\":"
                + "{\"string_value\":\"1000000\"}},\"input\":[{\"name\":\"INPUT0\",\"data_type\":\"TYPE_FP32\","
                + "\"dims\":[-1]}],\"output\":[{\"name\":\"OUTPUT0\",\"data_type\":\"TYPE_FP32\",\"dims\":[-1]}]}";
        try (NereidServer server = fixture.start(2_000_000)) {
            TestControl.load(server, "a", config.replace("\"max_batch_size\":8", "\"max_batch_size\":3"), Map.of());
            infer(server, "b", 1);
            infer(server, "c", 1);
            await(() -> fixture.events().contains("close a/1"));
            assertThat(infer(server, "a", 1)).containsExactly(1f);
            assertThat(server.models().config(ModelRef.latest("a")).getMaxBatchSize())
                    .as("the configuration stays")
                    .isEqualTo(3);

            TestControl.load(server, "sent", config, Map.of("7/file", ByteBuffer.allocate(3)));
            for (String model : List.of("a", "b", "c", "a")) {
                infer(server, model, 1);
            }

            assertThat(RecordingObserver.to(server, "sent", 1).response().version())
                    .isEqualTo(7);
            assertThat(fixture.events()).doesNotContain("close sent/7");
        }
    }

    @Test
    void findsModelsOfNamespaces() throws Exception {
        TestModels others = new TestModels(Files.createDirectories(directory.resolve("others")));
        models.recording("a", DemandFixture.MEGABYTE).recording("both", DemandFixture.MEGABYTE);
        others.recording("b", DemandFixture.MEGABYTE).recording("both", DemandFixture.MEGABYTE);
        ServerOptions options = fixture.options(ServerOptions.of(models.root(), others.root()), o -> {
            o.memoryBudget = 1_000_000;
            o.hasNamespaces = true;
        });
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(infer(server, "a", 1)).containsExactly(1f);
            assertThat(infer(server, "b", 1)).containsExactly(1f);
            assertThat(infer(server, "a", 1)).containsExactly(1f);
            assertThat(RecordingObserver.to(server, "both", 1).error().publicMessage())
                    .startsWith("There are 2 identifiers of model 'both'");
            assertThat(server.models().isReady(ModelRef.latest("b"))).isTrue();
            TestControl.unload(server, "b");
            assertThat(RecordingObserver.to(server, "b", 1).error().code()).isEqualTo(ErrorCode.NOT_FOUND);
        }
    }

    @Test
    void countsOverEvictions() throws Exception {
        models.recording("a", DemandFixture.MEGABYTE).recording("b", DemandFixture.MEGABYTE);
        try (NereidServer server = fixture.start(1_000_000)) {
            for (int i = 0; i < 3; i++) {
                infer(server, "a", 1);
                infer(server, "b", 1);
            }
            for (String model : List.of("a", "b")) {
                assertThat(server.models()
                                .statistics(ModelRef.latest(model))
                                .getFirst()
                                .inferences()
                                .success()
                                .count())
                        .isEqualTo(3);
            }
            DemandStatistics demand = server.demand().orElseThrow();
            assertThat(demand.loads()).isEqualTo(6);
            assertThat(demand.evictions()).isEqualTo(5);
            assertThat(demand.memory()).containsExactly(Map.entry("b", 1_000_000L));
            assertThat(server.models().statistics()).hasSize(2);
        }
    }

    @Test
    void respondsFromTheCacheAfterAnEvictionUnlessFilesHaveChanged() throws Exception {
        String cached = DemandFixture.MEGABYTE + "response_cache { enable: true }\n" + parameter("record", "");
        models.recording("a", cached).recording("b", DemandFixture.MEGABYTE);
        ServerOptions options = fixture.options(o -> {
            o.memoryBudget = 1_000_000;
            o.cache = Optional.of(CacheOptions.local(1 << 20));
        });
        try (NereidServer server = NereidServer.start(options)) {
            assertThat(infer(server, "a", 1)).containsExactly(1f);
            await(() -> {
                infer(server, "b", 1);
                return infer(server, "a", 1).equals(List.of(1f)) && fixture.executions() == 1; // once it is stored
            });
            infer(server, "b", 1);
            models.recording("a", cached + parameter("other", "1"));

            assertThat(infer(server, "a", 1)).containsExactly(1f);

            assertThat(fixture.executions()).as("a changed file").isEqualTo(2);
        }
    }

    @Tag("slow")
    @Test
    void servesAllRequestsWhileModelsComeAndGo() throws Exception {
        List<String> names = List.of("a", "b", "c", "d", "e");
        names.forEach(name -> models.recording(name, DemandFixture.MEGABYTE));
        try (NereidServer server = fixture.start(2_000_000);
                ExecutorService clients = Executors.newFixedThreadPool(4)) {
            // What a model takes is known after its first load. Three first loads at once would take more than
            // estimated.
            names.forEach(name -> infer(server, name, 0));
            List<Future<Integer>> all = new ArrayList<>();
            for (int client = 0; client < 4; client++) {
                Random random = new Random(client);
                all.add(clients.submit(() -> {
                    int over = 0;
                    for (int i = 0; i < 100; i++) {
                        assertThat(infer(server, names.get(random.nextInt(5)), i))
                                .containsExactly((float) i);
                        long sum = server.demand().orElseThrow().memory().values().stream()
                                .mapToLong(Long::longValue)
                                .sum();
                        over += sum > 2_000_000 ? 1 : 0;
                    }
                    return over;
                }));
            }
            for (Future<Integer> one : all) {
                assertThat(one.get(60, TimeUnit.SECONDS)).isZero();
            }
            assertThat(server.demand().orElseThrow().evictions()).isGreaterThan(10);
            assertThat(server.models().statistics().stream()
                            .mapToLong(model -> model.inferences().success().count())
                            .sum())
                    .isEqualTo(405);
        }
    }

    @Test
    void neverEvictsAModelWithALiveSequence() throws Exception {
        models.recording(
                "a", DemandFixture.MEGABYTE + "sequence_batching { max_sequence_idle_microseconds: 3600000000 }\n");
        models.recording("b", DemandFixture.MEGABYTE);
        try (NereidServer server = fixture.start(1_000_000)) {
            RecordingObserver first = new RecordingObserver();
            server.infer(request(server, "a", ofSequence(true, false)), first);
            assertThat(first.response().values()).hasSize(1);
            RecordingObserver waiting = RecordingObserver.to(server, "b", 2);
            await(() -> server.demand().orElseThrow().waiting() == 1);
            assertThat(fixture.events()).doesNotContain("close a/1", "load b/1 on [cpu]");

            RecordingObserver last = new RecordingObserver();
            server.infer(request(server, "a", ofSequence(false, true)), last);

            assertThat(last.response().values()).hasSize(1);
            assertThat(waiting.response().values()).containsExactly(2f);
            assertThat(fixture.events()).containsSubsequence("close a/1", "load b/1 on [cpu]");
        }
    }

    @Test
    void evictsAModelWhoseSequenceWasIdleForTooLong() throws Exception {
        models.recording(
                "a", DemandFixture.MEGABYTE + "sequence_batching { max_sequence_idle_microseconds: 200000 }\n");
        models.recording("b", DemandFixture.MEGABYTE);
        try (NereidServer server = fixture.start(1_000_000)) {
            RecordingObserver first = new RecordingObserver();
            server.infer(request(server, "a", ofSequence(true, false)), first);
            assertThat(first.response().values()).hasSize(1);

            assertThat(infer(server, "b", 2)).containsExactly(2f);

            assertThat(fixture.events()).containsSubsequence("close a/1", "load b/1 on [cpu]");
        }
    }

    private static RequestOptions ofSequence(boolean start, boolean end) {
        return new RequestOptions(
                0, 0, OptionalLong.empty(), Optional.of(new Sequence(new Sequence.Id.Numeric(7), start, end)));
    }
}
