package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelRef;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.CompletionStage;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Reloads of models whose files have not changed, at the request of clients. */
@Timeout(120)
final class ForcedReloadTest {
    private static final String ALL = "version_policy { all {} }\n";
    private static final String CACHED = "response_cache { enable: true }\n" + parameter("record", "");

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
    void loadsAllVersionsAnew() throws Exception {
        models.recording("m", ALL, 1, 2);
        try (NereidServer server = NereidServer.start(explicit("m"))) {
            TestControl.load(server, "m");
            assertThat(fixture.loads()).hasSize(2);

            force(server, "m");

            assertThat(fixture.loads()).hasSize(4);
            assertThat(TestControl.index(server)).containsExactly("m 1 READY", "m 2 READY");
            assertThat(server.isReady()).isTrue();
            DemandFixture.await(() -> closes().size() == 2);
        }
    }

    @Test
    void loadsAModelThatIsNotLoaded() throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(explicit())) {
            force(server, "m");

            assertThat(fixture.loads()).hasSize(1);
            assertThatThrownBy(() -> force(server, "nope"))
                    .hasMessage("failed to load 'nope', failed to poll from model repository");
        }
    }

    /** The requests of the old generation wait for the gate, and those of the new one do too. */
    @Test
    void completesTheRequestsOfTheGenerationThatItReplaces() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("gate", gate.toString()));
        try (NereidServer server = NereidServer.start(explicit("m"))) {
            List<RecordingObserver> requests = new ArrayList<>();
            requests.add(RecordingObserver.to(server, "m", 0));
            requests.add(RecordingObserver.to(server, "m", 1));

            force(server, "m");

            requests.add(RecordingObserver.to(server, "m", 2));
            assertThat(closes()).as("the old generation drains").isEmpty();
            Files.delete(gate);
            for (int i = 0; i < requests.size(); i++) {
                assertThat(requests.get(i).response().values()).containsExactly((float) i);
            }
            DemandFixture.await(() -> closes().equals(List.of("close m/1")));
        }
    }

    @Test
    void keepsServingIfItFails() throws Exception {
        models.recording("m", "");
        try (NereidServer server = NereidServer.start(explicit("m"))) {
            models.recording("m", parameter("fail_load", "1"));

            assertThatThrownBy(() -> force(server, "m")).hasMessageContaining("the model's file is broken");

            assertThat(DemandFixture.infer(server, "m", 1)).containsExactly(1f);
            assertThat(TestControl.index(server)).containsExactly("m 1 READY");
        }
    }

    @Test
    void keepsTheConfigurationThatAClientGave() throws Exception {
        models.recording("m", parameter("own", "yes"));
        try (NereidServer server = NereidServer.start(explicit("m"))) {
            TestControl.load(server, "m", json("given"), Map.of());

            force(server, "m");

            assertThat(fixture.loads()).hasSize(3);
            assertThat(parameters(server)).containsExactly("given");
            TestControl.load(server, "m");
            assertThat(fixture.loads()).as("the configuration stays").hasSize(3);

            models.recording("m", parameter("changed", "yes"));
            force(server, "m");
            assertThat(parameters(server)).containsExactly("changed");
        }
    }

    @Test
    void takesAConfigurationToo() throws Exception {
        models.recording("m", parameter("own", "yes"));
        try (NereidServer server = NereidServer.start(explicit("m"))) {
            server.control()
                    .load(new ModelControl.Load("m", Optional.of(json("given")), Map.of()).forced())
                    .toCompletableFuture()
                    .get();

            assertThat(parameters(server)).containsExactly("given");
        }
    }

    @Test
    void doesNotReuseCachedResponses() throws Exception {
        models.recording("m", CACHED);
        try (NereidServer server = NereidServer.start(explicit("m").with(ForcedReloadTest::cache))) {
            cache(server);
            long before = fixture.executions();
            TestControl.load(server, "m");
            DemandFixture.infer(server, "m", 1);
            assertThat(fixture.executions()).as("a load that does nothing").isEqualTo(before);

            force(server, "m");
            DemandFixture.infer(server, "m", 1);

            assertThat(fixture.executions()).isEqualTo(before + 1);
            cache(server);
            force(server, "m");
            long second = fixture.executions();
            DemandFixture.infer(server, "m", 1);
            assertThat(fixture.executions()).as("a second forced load").isEqualTo(second + 1);
        }
    }

    /** Responses of the time before the forced load stay unused, and those after it are used. */
    @Test
    void doesNotReuseCachedResponsesAfterAnUnload() throws Exception {
        models.recording("m", CACHED);
        try (NereidServer server = NereidServer.start(explicit("m").with(ForcedReloadTest::cache))) {
            cache(server);
            force(server, "m");
            TestControl.unload(server, "m");
            long before = fixture.executions();

            TestControl.load(server, "m");
            DemandFixture.infer(server, "m", 1);

            assertThat(fixture.executions()).isEqualTo(before + 1);
            cache(server);
            TestControl.unload(server, "m");
            TestControl.load(server, "m");
            long second = fixture.executions();
            DemandFixture.infer(server, "m", 1);
            assertThat(fixture.executions()).isEqualTo(second);
        }
    }

    @Test
    void doesNotReuseCachedResponsesAfterAnEviction() throws Exception {
        models.recording("m", DemandFixture.MEGABYTE + CACHED).recording("other", DemandFixture.MEGABYTE);
        ServerOptions options = fixture.options(o -> o.memoryBudget = 1_000_000).with(ForcedReloadTest::cache);
        try (NereidServer server = NereidServer.start(options)) {
            cache(server);
            force(server, "m");
            long before = fixture.executions();
            DemandFixture.infer(server, "other", 1);

            assertThat(DemandFixture.infer(server, "m", 1)).containsExactly(1f);

            assertThat(fixture.executions()).isEqualTo(before + 1);
            assertThat(fixture.loads())
                    .as("first load, forced load, the other, load after the eviction")
                    .hasSize(4);
        }
    }

    /** The first load runs; those that wait are done once. */
    @Test
    void loadsOnceForEqualRequestsThatWait() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("m", parameter("load_gate", gate.toString()));
        try (NereidServer server = NereidServer.start(explicit())) {
            CompletionStage<Void> first = server.control().load(load("m"));
            DemandFixture.await(() -> TestControl.index(server).equals(List.of("m 1 LOADING")));
            List<CompletionStage<Void>> forced = Stream.generate(
                            () -> server.control().load(load("m").forced()))
                    .limit(100)
                    .toList();
            Files.delete(gate);

            first.toCompletableFuture().get();
            for (CompletionStage<Void> one : forced) {
                one.toCompletableFuture().get();
            }
            assertThat(fixture.loads()).hasSize(2);
        }
    }

    private List<String> closes() throws IOException {
        return fixture.events().stream()
                .filter(event -> event.startsWith("close m/"))
                .toList();
    }

    private static void cache(ServerOptions.Builder options) {
        options.cache = Optional.of(CacheOptions.local(1 << 20));
    }

    /** Sends a request until its response comes from the cache. */
    private void cache(NereidServer server) throws Exception {
        DemandFixture.await(() -> {
            long before = fixture.executions();
            DemandFixture.infer(server, "m", 1);
            return fixture.executions() == before;
        });
    }

    private static Iterable<String> parameters(NereidServer server) {
        return server.models().config(ModelRef.latest("m")).getParametersMap().keySet();
    }

    private static String json(String parameter) {
        return """
                {"backend": "recording", "max_batch_size": 8, "instance_group": [{"kind": "KIND_CPU", "count": 1}],
                 "input": [{"name": "INPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
                 "output": [{"name": "OUTPUT0", "data_type": "TYPE_FP32", "dims": [-1]}],
                 "parameters": {"%s": {"string_value": "yes"}}}
                """.formatted(parameter);
    }

    private static ModelControl.Load load(String model) {
        return new ModelControl.Load(model, Optional.empty(), Map.of());
    }

    private static void force(NereidServer server, String model) throws Exception {
        TestControl.force(server, model);
    }

    private ServerOptions explicit(String... startup) {
        return ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .with(o -> o.pluginCache = directory.resolve("work"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.explicit(startup);
                    o.processors = 2;
                });
    }
}
