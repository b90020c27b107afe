package dev.nereid.server;

import static dev.nereid.server.DemandFixture.MEGABYTE;
import static dev.nereid.server.DemandFixture.infer;
import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.plugin.cache.CacheOptions;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.OptionalLong;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Ensembles whose steps are loaded, reloaded and unloaded while they serve. */
@Timeout(60)
final class EnsembleLifecycleTest {
    @TempDir
    private Path directory;

    private DemandFixture fixture;
    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        fixture = DemandFixture.in(directory);
        models = fixture.models();
    }

    private void pipeline(int version, String... steps) {
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < steps.length; i++) {
            text.append("""
                    step { model_name: "%s" model_version: %d
                      input_map { key: "INPUT0" value: "%s" } output_map { key: "OUTPUT0" value: "%s" } }
                    """.formatted(
                    steps[i], version, i == 0 ? "INPUT0" : "t" + i, i == steps.length - 1 ? "OUTPUT0" : "t" + (i + 1)));
        }
        models.model(
                "pipeline",
                "platform: \"ensemble\"\nmax_batch_size: 8\n" + TestModels.TENSORS + "ensemble_scheduling {\n" + text
                        + "}\n");
    }

    private NereidServer start(String... loaded) throws InterruptedException {
        return NereidServer.start(ServerOptions.of(models.root())
                .withPlugins(directory.resolve("plugins"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> o.explicit(loaded)));
    }

    @Test
    void servesWhileAStepIsReloaded() throws Exception {
        models.recording("a", "dynamic_batching { }\n").recording("b", "");
        pipeline(-1, "a", "b");
        AtomicBoolean ended = new AtomicBoolean();
        try (NereidServer server = start("pipeline");
                ExecutorService clients = Executors.newFixedThreadPool(4)) {
            List<Future<Integer>> all = new ArrayList<>();
            for (int client = 0; client < 4; client++) {
                all.add(clients.submit(() -> {
                    int count = 0;
                    while (!ended.get()) {
                        assertThat(infer(server, "pipeline", count)).containsExactly((float) count);
                        count++;
                    }
                    return count;
                }));
            }
            try {
                for (int i = 0; i < 10; i++) {
                    models.recording("a", "dynamic_batching { }\n" + parameter("p", Integer.toString(i)));
                    TestControl.load(server, "a");
                }
            } finally {
                ended.set(true);
            }
            for (Future<Integer> one : all) {
                assertThat(one.get(30, TimeUnit.SECONDS)).isPositive();
            }
        }
    }

    @Test
    void refusesTheReloadOfAStepThatWouldBreakIt() throws Exception {
        models.recording("a", "").recording("b", "");
        pipeline(-1, "a", "b");
        try (NereidServer server = start("pipeline")) {
            models.model(
                    "a",
                    "backend: \"recording\"\nmax_batch_size: 8\n"
                            + TestModels.TENSORS.replace("TYPE_FP32", "TYPE_INT32")
                            + "instance_group { count: 1 kind: KIND_CPU }\n");

            assertThatExceptionOfType(InferenceException.class)
                    .isThrownBy(() -> TestControl.load(server, "a"))
                    .withMessageContaining("inconsistent data type");

            assertThat(infer(server, "pipeline", 4)).containsExactly(4f);
            assertThat(infer(server, "a", 5)).containsExactly(5f);
        }
    }

    @Test
    void refusesTheReloadOfAStepAsDecoupledUntilItIsUnloaded() throws Exception {
        models.recording("a", "").recording("b", "");
        pipeline(-1, "a", "b");
        try (NereidServer server = start("pipeline")) {
            models.recording("a", "model_transaction_policy { decoupled: true }\n");

            assertThatExceptionOfType(InferenceException.class)
                    .isThrownBy(() -> TestControl.load(server, "a"))
                    .withMessageContaining(
                            "ensemble 'pipeline' depends on 'a' and was loaded while that was not decoupled;"
                                    + " unload 'a' first, which unloads the ensemble, and load it again");
            assertThat(infer(server, "pipeline", 4)).containsExactly(4f);

            TestControl.unload(server, "a");
            TestControl.load(server, "a");
            assertThat(server.models()
                            .config(ModelRef.latest("pipeline"))
                            .getModelTransactionPolicy()
                            .getDecoupled())
                    .isTrue();
        }
    }

    @Test
    void isUnloadedWithAStepAndLoadedAgainWithIt() throws Exception {
        models.recording("a", "").recording("b", "");
        pipeline(-1, "a", "b");
        try (NereidServer server = start("pipeline")) {
            TestControl.unload(server, "a");
            assertThatExceptionOfType(InferenceException.class)
                    .isThrownBy(() -> server.models().isReady(ModelRef.latest("pipeline")));

            TestControl.load(server, "a");

            assertThat(infer(server, "pipeline", 4)).containsExactly(4f);
        }
    }

    @Test
    void usesTheVersionThatAStepRequires() throws Exception {
        models.recording("a", "version_policy { all { } }\n", 1, 2).recording("b", "");
        pipeline(1, "a", "b");
        try (NereidServer server = start("pipeline")) {
            assertThat(infer(server, "pipeline", 4)).containsExactly(4f);

            assertThat(server.models()
                            .statistics(new ModelRef("a", 1))
                            .getFirst()
                            .inferences()
                            .success()
                            .count())
                    .isEqualTo(1);
            assertThat(server.models()
                            .statistics(new ModelRef("a", 2))
                            .getFirst()
                            .inferences()
                            .success()
                            .count())
                    .isZero();
        }
    }

    @Test
    void isNotLoadedWithoutTheVersionThatAStepRequires() throws Exception {
        models.recording("a", "").recording("b", "");
        pipeline(3, "a", "b");
        try (NereidServer server = start("a")) {
            assertThatExceptionOfType(InferenceException.class)
                    .isThrownBy(() -> TestControl.load(server, "pipeline"))
                    .withMessageContaining(
                            "ensemble 'pipeline' depends on 'a' whose required version 3 is not loaded.");
        }
    }

    /** Also when a step is evicted and loaded again, and the ensemble is not. */
    @Test
    void cachesResponsesAfterAStepWasEvicted() throws Exception {
        for (String name : List.of("a", "b", "c", "d")) {
            models.recording(name, MEGABYTE + parameter("record", ""));
        }
        pipeline(-1, "a", "b");
        Path config = models.root().resolve("pipeline/config.pbtxt");
        Files.writeString(config, Files.readString(config) + "response_cache { enable: true }\n");
        ServerOptions options = fixture.options(o -> {
            o.memoryBudget = 2_000_000;
            o.cache = Optional.of(CacheOptions.local(1 << 20));
        });
        try (NereidServer server = NereidServer.start(options)) {
            for (int round = 0; round < 2; round++) {
                DemandFixture.await(() -> {
                    long before = fixture.executions();
                    assertThat(infer(server, "pipeline", 3)).containsExactly(3f);
                    return fixture.executions() == before;
                });
                assertThat(infer(server, "c", 1)).containsExactly(1f);
                assertThat(infer(server, "d", 2)).containsExactly(2f);
            }
        }
    }

    /** The deadline of a request bounds its wait for steps that do not fit into the memory. */
    @Test
    void endsTheWaitForStepsInTime() throws Exception {
        Path gate = Files.createFile(directory.resolve("gate"));
        models.recording("a", MEGABYTE).recording("b", MEGABYTE);
        models.recording("busy", MEGABYTE + parameter("gate", gate.toString()));
        pipeline(-1, "a", "b");
        try (NereidServer server = fixture.start(2_000_000)) {
            assertThat(infer(server, "pipeline", 3)).containsExactly(3f);
            RecordingObserver busy = RecordingObserver.to(server, "busy", 1);
            DemandFixture.await(() -> fixture.loads().contains("load busy/1 on [cpu]"));

            RecordingObserver late = new RecordingObserver();
            RequestOptions options =
                    new RequestOptions(0, 0, OptionalLong.of(System.nanoTime() + 100_000_000), Optional.empty());
            server.infer(DemandFixture.request(server, "pipeline", options), late);
            assertThat(late.error().code()).isIn(ErrorCode.CANCELLED, ErrorCode.UNAVAILABLE);

            Files.delete(gate);
            assertThat(busy.response().values()).containsExactly(1f);
            assertThat(infer(server, "pipeline", 4)).containsExactly(4f);
            DemandFixture.await(() -> server.memory().bytesInUse() == 0);
        }
    }

    @Test
    void loadsAllStepsOnDemandTogether() throws Exception {
        for (String name : List.of("a", "b", "c", "d")) {
            models.recording(name, MEGABYTE);
        }
        pipeline(-1, "a", "b");
        try (NereidServer server = fixture.start(2_000_000)) {
            for (int round = 0; round < 3; round++) {
                assertThat(infer(server, "c", 1)).containsExactly(1f);
                assertThat(infer(server, "d", 2)).containsExactly(2f);
                assertThat(infer(server, "pipeline", 3)).containsExactly(3f);
            }
            assertThat(fixture.loads().stream().filter("load b/1 on [cpu]"::equals))
                    .hasSizeBetween(2, 3);
        }
    }
}
