package dev.nereid.server;

import static dev.nereid.server.DemandFixture.MEGABYTE;
import static dev.nereid.server.DemandFixture.infer;
import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelRef;
import dev.nereid.server.options.ServerOptions;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
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
                .withLifecycle(lifecycle -> lifecycle.withControl(control -> control.withExplicit(loaded))));
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
                    .withMessageContaining("ensemble 'pipeline' depends on 'a' whose required version 3 is not loaded.");
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
