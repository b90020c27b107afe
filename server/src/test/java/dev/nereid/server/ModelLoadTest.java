package dev.nereid.server;

import static dev.nereid.server.TestModels.TENSORS;
import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;
import static org.assertj.core.api.Assertions.tuple;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.OptionalLong;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** Tests loads of models, failures of loads, and the close of everything. */
final class ModelLoadTest {
    @TempDir
    private Path directory;

    private Path plugins;
    private Path events;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        events = directory.resolve("events");
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
    }

    @Test
    void loadsAModelAndClosesEverythingInReverseOrder() throws Exception {
        models.recording("m", "instance_group { count: 2 kind: KIND_CPU }");

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.isReady()).isTrue();
            assertThat(events())
                    .containsExactly(
                            "create",
                            "complete m/1",
                            "load m/1 on [cpu, cpu]",
                            "instance m_0_0 on cpu",
                            "instance m_0_1 on cpu");
            Files.delete(events);
        }

        assertThat(events()).hasSize(4).endsWith("close m/1", "close backend");
        assertThat(events().subList(0, 2)).containsExactlyInAnyOrder("close m_0_0", "close m_0_1");
    }

    @Test
    void makesThingsInOrder() throws Exception {
        models.recording("m", parameter("record", "yes") + """
                instance_group { kind: KIND_CPU }
                model_warmup { name: "w" batch_size: 1 inputs {
                  key: "INPUT0" value { data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } }
                """);

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.models().isReady(ModelRef.latest("m"))).isTrue();
            assertThat(events())
                    .containsExactly(
                            "create",
                            "complete m/1",
                            "load m/1 on [cpu]", // its groups are filled in by then
                            "instance m_0_0 on cpu",
                            "execute 1 on m_0_0");
        }
    }

    @Test
    void makesEachInstanceOnce() throws Exception {
        models.recording(
                "m",
                "instance_group [ { count: 3 kind: KIND_CPU }, { name: \"b\" count: 2 kind: KIND_MODEL },"
                        + " { kind: KIND_GPU count: 2 gpus: [ 1, 0 ] } ]");

        try (NereidServer server = NereidServer.start(options().with(o -> o.gpus = List.of(0, 1)))) {
            assertThat(server.isReady()).isTrue();
            assertThat(events())
                    .filteredOn(event -> event.startsWith("instance"))
                    .containsExactly(
                            "instance m_0_0 on cpu",
                            "instance m_0_1 on cpu",
                            "instance m_0_2 on cpu",
                            "instance b_0 on model",
                            "instance b_1 on model",
                            "instance m_2_0 on gpu1",
                            "instance m_2_0 on gpu0",
                            "instance m_2_1 on gpu1",
                            "instance m_2_1 on gpu0");
            Files.delete(events);
        }
        assertThat(events())
                .filteredOn(event -> event.matches("close (m_|b_).*"))
                .hasSize(9);
    }

    @Test
    void keepsPassiveInstancesApart() throws Exception {
        models.recording(
                "m",
                parameter("record", "yes") + "instance_group [ { name: \"a\" kind: KIND_CPU passive: true count: 2 },"
                        + " { name: \"b\" kind: KIND_CPU } ]");

        try (NereidServer server = NereidServer.start(options())) {
            for (int i = 0; i < 10; i++) {
                RecordingObserver.to(server, "m", i).await();
            }
            assertThat(events())
                    .contains("instance a_0 on cpu", "instance a_1 on cpu")
                    .filteredOn(event -> event.startsWith("execute"))
                    .hasSize(10)
                    .containsOnly("execute 1 on b_0");
        }
    }

    @Test
    void makesNoBackendThatNoModelNeeds() throws Exception {
        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.isReady()).isTrue();
            assertThat(server.models().index()).isEmpty();
        }

        assertThat(events).doesNotExist();
    }

    @Test
    void takesBackWhatWasMadeWhenAnInstanceFails() throws Exception {
        models.recording(
                "broken", "instance_group { count: 3 kind: KIND_CPU }\n" + parameter("fail_instance", "broken_0_2"));
        models.recording("good", "");

        try (NereidServer server = NereidServer.start(options().with(o -> {
            o.loadThreads = 1;
            o.exitOnError = false;
        }))) {
            assertThat(events())
                    .containsExactly(
                            "create",
                            "complete broken/1",
                            "load broken/1 on [cpu, cpu, cpu]",
                            "instance broken_0_0 on cpu",
                            "instance broken_0_1 on cpu",
                            "instance broken_0_2 on cpu",
                            "close broken_0_1",
                            "close broken_0_0",
                            "close broken/1",
                            "close backend",
                            "create",
                            "complete good/1",
                            "load good/1 on [cpu]",
                            "instance good_0_0 on cpu");
            assertThat(server.models().index())
                    .containsExactly(
                            unavailable("broken", 1, "Unavailable: no memory for an instance"), ready("good", 1));
            assertThat(server.isReady()).isFalse();
            assertThat(RecordingObserver.to(server, "good", 1, 2).response().values())
                    .containsExactly(1f, 2f);
        }

        assertThat(events()).endsWith("close good_0_0", "close good/1", "close backend");
    }

    @Test
    void servesTheOthersWhenALoadFails() throws Exception {
        models.recording("a", parameter("fail_load", "1"));
        models.recording("b", parameter("throw_load", "yes"));
        models.recording("c", "");

        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            assertThat(server.models().index())
                    .containsExactly(
                            unavailable("a", 1, "Internal: the model's file is broken"),
                            unavailable(
                                    "b",
                                    1,
                                    "Internal: plugin 'recording': Backend.load failed:"
                                            + " java.lang.IllegalStateException: a bug"),
                            ready("c", 1));
            assertThat(RecordingObserver.to(server, "a", 1).error().publicMessage())
                    .isEqualTo("Request for unknown model: 'a' has no available versions");
        }
    }

    @Test
    void servesNoVersionOfALoadOfWhichOneFails() throws Exception {
        models.recording("m", "version_policy { all {} }\n" + parameter("fail_load", "2"), 1, 2, 3);

        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            String reason = "Unavailable: not served, since another version of this load failed: [2]";
            assertThat(server.models().index())
                    .containsExactly(
                            unavailable("m", 1, reason),
                            unavailable("m", 2, "Internal: the model's file is broken"),
                            unavailable("m", 3, reason));
            assertThat(events()).containsSubsequence("close m/3", "close m/1").doesNotContain("close m/2");
        }
    }

    @Test
    void failsToStartWhenItIsToExitOnErrors() throws Exception {
        models.recording("a", parameter("fail_load", "1"));
        models.model("b", "backend: \"recording\" max_batch_size: -1");
        models.recording("c", "");

        assertThatThrownBy(() -> NereidServer.start(options()))
                .isInstanceOfSatisfying(
                        InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INTERNAL))
                .hasMessage("""
                        failed to load all models:
                          a version 1: Internal: the model's file is broken
                          b: Invalid argument: 'max_batch_size' must be non-negative value for b""");
        assertThat(events()).endsWith("close c_0_0", "close c/1", "close backend");
    }

    @Test
    void countsAsReadyDespiteFailuresWithoutStrictReadiness() throws Exception {
        models.recording("a", parameter("fail_load", "1"));

        try (NereidServer server = NereidServer.start(options().with(o -> {
            o.exitOnError = false;
            o.strictReadiness = false;
        }))) {
            assertThat(server.isReady()).isTrue();
        }
    }

    @Test
    void isNotReadyWhileAModelIsLoadingWithoutStrictReadinessEither() throws Exception {
        models.recording("a", parameter("fail_load", "1"));
        models.recording("m", "");
        Path gate = Files.createFile(models.root().resolve("m/gate"));

        try (NereidServer server = NereidServer.startLoading(options().with(o -> {
            o.exitOnError = false;
            o.strictReadiness = false;
        }))) {
            assertThat(server.isLive()).isTrue();
            assertThat(server.isReady()).isFalse();
            Files.delete(gate);
            assertThatThrownBy(server::awaitModels).isInstanceOf(InferenceException.class);
            assertThat(server.isReady()).isTrue();
        }
    }

    @Test
    void isNotReadyWhileAnInstanceIsNot() throws Exception {
        models.recording("m", parameter("unready", "yes"));

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.isLive()).isTrue();
            assertThat(server.isReady()).isFalse();
            assertThat(server.models().isReady(ModelRef.latest("m"))).isFalse();
        }
    }

    @Test
    void isNotReadyWhileAModelIsLoading() throws Exception {
        models.recording("m", "");
        Path gate = Files.createFile(models.root().resolve("m/gate"));

        try (NereidServer server = NereidServer.startLoading(options())) {
            assertThat(server.isLive()).isTrue();
            assertThat(server.isReady()).isFalse();
            Files.delete(gate);
            server.awaitModels();
            assertThat(server.isReady()).isTrue();
        }
    }

    @Test
    void namesTheBackendThatIsMissing() throws Exception {
        models.model("m", "backend: \"nowhere\"\n" + TENSORS);

        assertReason(
                "m",
                OptionalLong.of(1),
                "Invalid argument: unable to find backend library for backend 'nowhere', try specifying"
                        + " runtime on the model configuration.");
    }

    @Test
    void reportsThatThePluginOfTheMissingBackendIsBroken() throws Exception {
        Files.writeString(plugins.resolve("nowhere.jar"), "this is no zip file");
        models.model("m", "backend: \"nowhere\"\n" + TENSORS);

        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            assertThat(server.models().index().getFirst().reason())
                    .startsWith("Invalid argument: unable to find backend library for backend 'nowhere'")
                    .contains("Plugin 'nowhere' is broken: nowhere.jar: not a readable jar");
            assertThat(server.backends()).hasSize(2);
        }
    }

    @Test
    void triesToMakeABackendForEachModel() throws Exception {
        models.recording("a", "");
        models.recording("b", "");

        try (NereidServer server = NereidServer.start(options()
                .with(o -> {
                    o.exitOnError = false;
                    o.loadThreads = 1;
                })
                .withBackendSetting("recording", "fail_create", "yes"))) {
            assertThat(server.models().index())
                    .containsExactly(
                            unavailable("a", 1, "Unavailable: no device"),
                            unavailable("b", 1, "Unavailable: no device"));
        }

        assertThat(events()).containsExactly("create", "create");
    }

    @Test
    void refusesModelsThatAppearTwice() throws Exception {
        models.recording("m", "").recording("other", "");
        TestModels second = new TestModels(Files.createDirectories(directory.resolve("second")));
        second.recording("m", "");

        try (NereidServer server = NereidServer.start(options().with(o -> {
            o.modelRepositories = List.of(models.root(), second.root());
            o.exitOnError = false;
        }))) {
            assertThat(server.models().index())
                    .containsExactly(
                            new ModelStatus(
                                    "m",
                                    OptionalLong.empty(),
                                    ModelStatus.State.UNAVAILABLE,
                                    "model appears in two or more repositories"),
                            ready("other", 1));
            assertThat(server.isReady()).isTrue();
            assertThat(RecordingObserver.to(server, "m", 1).error().publicMessage())
                    .isEqualTo("Request for unknown model: 'm' is not found");
        }
    }

    @Test
    void reportsWhereAConfigurationIsWrong() throws Exception {
        models.model("m", "backend: \"recording\"\nmax_batch_size: many\n");

        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            assertThat(server.models().index().getFirst().reason())
                    .startsWith("Internal: failed to read text proto from m/config.pbtxt")
                    .contains("2:17");
        }
    }

    @Test
    void refusesANativeBatchStrategy() throws Exception {
        String problem =
                "Unsupported: batching strategies in native code are not supported, model '%s' configures one by %s"
                        + " (expected: one that its backend makes in Model.batching)";
        models.recording("assigned", "dynamic_batching {}\n" + parameter("TRITON_BATCH_STRATEGY_PATH", "/lib/s.so"));
        models.recording("brought", "dynamic_batching {}\n");
        Files.createFile(models.root().resolve("brought/1/batchstrategy.so"));
        models.recording("shared", "dynamic_batching {}\n");
        Files.createFile(models.root().resolve("shared/batchstrategy.so"));
        models.recording("unused", "");
        Files.createFile(models.root().resolve("unused/1/batchstrategy.so"));

        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            assertThat(server.models().index())
                    .extracting(ModelStatus::name, ModelStatus::reason)
                    .containsExactly(
                            tuple(
                                    "assigned",
                                    problem.formatted("assigned", "parameter TRITON_BATCH_STRATEGY_PATH: '/lib/s.so'")),
                            tuple("brought", problem.formatted("brought", "'1/batchstrategy.so'")),
                            tuple("shared", problem.formatted("shared", "'batchstrategy.so'")),
                            tuple("unused", ""));
        }
    }

    @Test
    void refusesInstancesOnGraphicsProcessorsThatAreNotThere() throws Exception {
        models.recording("m", "instance_group { kind: KIND_GPU }");

        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            assertThat(server.models().index().getFirst().reason())
                    .startsWith("Invalid argument: instance group m_0 of model m has kind KIND_GPU but ");
        }
    }

    @Test
    void makesInstancesOnEachGraphicsProcessor() throws Exception {
        models.recording("m", "instance_group { kind: KIND_GPU count: 2 }");

        try (NereidServer server = NereidServer.start(options().with(o -> o.gpus = List.of(0, 1)))) {
            assertThat(server.isReady()).isTrue();
            assertThat(events()).contains("load m/1 on [gpu0, gpu1, gpu0, gpu1]");
        }
    }

    @Test
    void makesPassiveInstancesThatNeverRun() throws Exception {
        models.recording(
                "m",
                "instance_group [ { name: \"a\" kind: KIND_CPU }, { name: \"b\" kind: KIND_CPU" + " passive: true } ]");

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(RecordingObserver.to(server, "m", 3).response().values()).containsExactly(3f);
        }

        assertThat(events())
                .containsSubsequence(
                        "instance a_0 on cpu", "instance b_0 on cpu", "close a_0", "close b_0", "close m/1");
    }

    @Test
    void refusesAModelOfPassiveInstancesOnly() throws Exception {
        models.recording("m", "instance_group { kind: KIND_CPU passive: true }");

        assertReason(
                "m",
                OptionalLong.of(1),
                "Invalid argument: model 'm' has passive instances only (expected: one that runs)");
        assertThat(events()).endsWith("close m_0_0", "close m/1", "close backend");
    }

    @Test
    void completesAModelWithoutConfiguration() throws Exception {
        models.model("auto.recording", "");

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.models().config(ModelRef.latest("auto.recording")).getMaxBatchSize())
                    .isEqualTo(4);
            assertThat(server.models().config(ModelRef.latest("auto.recording")).hasDynamicBatching())
                    .isTrue();
            assertThat(RecordingObserver.to(server, "auto.recording", 5)
                            .response()
                            .values())
                    .containsExactly(5f);
        }
    }

    @Test
    void refusesAModelWithoutConfigurationThatNoBackendCompletes() throws Exception {
        models.model("m.recording", "");

        assertReason(
                "m.recording",
                OptionalLong.of(1),
                "Not found: model configuration is not provided for model 'm.recording'");
    }

    @Test
    void doesNotInvokeTheBackendWhenCompletionIsOff() throws Exception {
        models.model("auto", "backend: \"recording\"");
        models.model("untyped", "backend: \"recording\" input { name: \"INPUT0\" dims: [ 1 ] }");

        try (NereidServer server = NereidServer.start(options().with(o -> {
            o.autoComplete = false;
            o.exitOnError = false;
        }))) {
            assertThat(server.models().index())
                    .extracting(ModelStatus::name, ModelStatus::state)
                    .containsExactly(
                            tuple("auto", ModelStatus.State.READY), tuple("untyped", ModelStatus.State.UNAVAILABLE));
            assertThat(server.models().metadata(ModelRef.latest("auto")).inputs())
                    .isEmpty();
            assertThat(events()).noneMatch(event -> event.startsWith("complete"));
        }
    }

    @Test
    void findsTheBackendOfALegacyPlatform() throws Exception {
        models.model("m", "platform: \"recorded\"\n" + TENSORS);

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.models().metadata(ModelRef.latest("m")).platform())
                    .isEqualTo("recorded");
        }
    }

    @Test
    void servesTheVersionsOfThePolicy() throws Exception {
        models.recording("m", "version_policy { latest { num_versions: 2 } }", 1, 2, 5);

        try (NereidServer server = NereidServer.start(options())) {
            assertThat(server.models().index()).containsExactly(ready("m", 2), ready("m", 5));
            assertThat(server.models().metadata(ModelRef.latest("m")).versions())
                    .containsExactly(2L, 5L);
            assertThat(server.models().metadata(new ModelRef("m", 2)).versions())
                    .containsExactly(2L);
            assertThat(RecordingObserver.to(server, "m", 1).response().version())
                    .isEqualTo(5);
            assertThat(RecordingObserver.to(server, new ModelRef("m", 2), "INPUT0", new long[] {1, 1}, 1)
                            .response()
                            .version())
                    .isEqualTo(2);
            assertThatThrownBy(() -> server.models().metadata(new ModelRef("m", 1)))
                    .hasMessage("Request for unknown model: 'm' version 1 is not found");
        }
    }

    @Test
    void prefersTheNamedConfiguration() throws Exception {
        models.recording("m", "");
        Files.createDirectories(models.root().resolve("m/configs"));
        Files.writeString(
                models.root().resolve("m/configs/small.pbtxt"), "backend: \"recording\" max_batch_size: 3\n" + TENSORS);

        try (NereidServer server = NereidServer.start(options().with(o -> o.configName = "small"))) {
            assertThat(server.models().config(ModelRef.latest("m")).getMaxBatchSize())
                    .isEqualTo(3);
        }
    }

    private void assertReason(String model, OptionalLong version, String reason) throws Exception {
        try (NereidServer server = NereidServer.start(options().with(o -> o.exitOnError = false))) {
            assertThat(server.models().index())
                    .containsExactly(new ModelStatus(model, version, ModelStatus.State.UNAVAILABLE, reason));
        }
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting("recording", "events", events.toString())
                .with(o -> o.processors = 2);
    }

    private List<String> events() throws IOException {
        return Files.readAllLines(events);
    }

    private static ModelStatus ready(String model, long version) {
        return new ModelStatus(model, OptionalLong.of(version), ModelStatus.State.READY, "");
    }

    private static ModelStatus unavailable(String model, long version, String reason) {
        return new ModelStatus(model, OptionalLong.of(version), ModelStatus.State.UNAVAILABLE, reason);
    }
}
