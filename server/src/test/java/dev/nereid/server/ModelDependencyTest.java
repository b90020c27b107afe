package dev.nereid.server;

import static dev.nereid.server.TestControl.awaitIndex;
import static dev.nereid.server.TestControl.index;
import static dev.nereid.server.TestControl.load;
import static dev.nereid.server.TestControl.unload;
import static dev.nereid.server.TestControl.unloadWithNeeded;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.stream.Collectors;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Ensembles: what they need is loaded and unloaded with them. The orders of loads and unloads are in {@code
 * ModelDependenciesTest}.
 */
@Timeout(120)
final class ModelDependencyTest {
    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels models;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        TestPlugins.recording(plugins);
        models.recording("scale", "").recording("net", "").recording("other", "");
    }

    private static void ensemble(TestModels models, String name, String... steps) {
        models.model(
                name,
                "platform: \"ensemble\"\nmax_batch_size: 8\n" + TestModels.TENSORS
                        + "ensemble_scheduling { step ["
                        + Arrays.stream(steps).map("""
                                { model_name: "%s" model_version: -1
                                  input_map { key: "INPUT0" value: "INPUT0" }
                                  output_map { key: "OUTPUT0" value: "OUTPUT0" } }
                                """::formatted).collect(Collectors.joining(","))
                        + "] }\n");
    }

    @Test
    void loadsWhatAModelNeedsFirst() throws Exception {
        chain("inner", "scale", "net");
        chain("outer", "inner", "net");
        try (NereidServer server = NereidServer.start(options())) {
            load(server, "outer");

            assertThat(index(server))
                    .containsExactly("inner 1 READY", "net 1 READY", "other UNKNOWN", "outer 1 READY", "scale 1 READY");
        }
    }

    @Test
    void namesTheStepThatCannotBeLoaded() throws Exception {
        models.model("broken", "backend: \"recording\"\nmax_batch_size: -1");
        chain("inner", "broken", "net");
        chain("outer", "inner", "net");
        try (NereidServer server = NereidServer.start(options())) {
            String inner = "ensemble 'inner' depends on 'broken' which is not valid. Model 'broken'"
                    + " failed with error: failed to load 'broken', failed to poll from model repository:"
                    + " 'max_batch_size' must be non-negative value for broken";
            assertThatThrownBy(() -> load(server, "outer"))
                    .hasMessage("ensemble 'outer' depends on 'inner' which is not valid. Model 'inner' failed with"
                            + " error: " + inner);
            assertThat(index(server)).contains("inner UNAVAILABLE Invalid argument: " + inner);
        }
    }

    /** The reason of its backend is passed on; an ensemble that does not fit its steps is not valid itself. */
    @Test
    void saysWhyAStepHasNoLoadedVersion() throws Exception {
        models.recording("broken", TestModels.parameter("fail_load", "1"));
        chain("inner", "broken", "net");
        chain("outer", "inner", "net");
        models.model(
                "wide",
                "platform: \"ensemble\"\nmax_batch_size: 64\n" + TestModels.TENSORS
                        + EnsembleFixture.scheduling(
                                EnsembleFixture.step("scale", "INPUT0=INPUT0", "OUTPUT0=mid"),
                                EnsembleFixture.step("net", "INPUT0=mid", "OUTPUT0=OUTPUT0")));
        chain("around", "wide", "net");
        try (NereidServer server = NereidServer.start(options())) {
            String inner = "ensemble 'inner' depends on 'broken' which has no loaded version. Model 'broken' loading"
                    + " failed with error: load failed for model 'broken': version 1 is at UNAVAILABLE state: Internal:"
                    + " the model's file is broken;\n";
            assertThatThrownBy(() -> load(server, "inner")).hasMessage(inner);
            assertThatThrownBy(() -> load(server, "outer"))
                    .hasMessage("ensemble 'outer' depends on 'inner' which is not valid. Model 'inner' failed with"
                            + " error: " + inner);
            assertThatThrownBy(() -> load(server, "around"))
                    .hasMessageStartingWith(
                            "ensemble 'around' depends on 'wide' which is not valid. Model 'wide' failed"
                                    + " with error: ")
                    .hasMessageContaining(
                            "ensemble wide allows maximum batch size 64, but it contains model scale which"
                                    + " only allows maximum batch size to be 8");
        }
    }

    /** Without its own step in between, an ensemble would map its input to its output. */
    private void chain(String name, String first, String second) {
        models.model(
                name,
                "platform: \"ensemble\"\nmax_batch_size: 8\n" + TestModels.TENSORS
                        + EnsembleFixture.scheduling(
                                EnsembleFixture.step(first, "INPUT0=INPUT0", "OUTPUT0=mid"),
                                EnsembleFixture.step(second, "INPUT0=mid", "OUTPUT0=OUTPUT0")));
    }

    @Test
    void unloadsWhatOnlyTheModelNeeded() throws Exception {
        chain("pipeline", "scale", "net");
        try (NereidServer server = NereidServer.start(options())) {
            load(server, "net"); // for its own sake
            load(server, "other");
            load(server, "pipeline");
            assertThat(index(server)).contains("net 1 READY", "other 1 READY", "pipeline 1 READY", "scale 1 READY");

            unload(server, "pipeline");
            awaitIndex(server, "net 1 READY", "other 1 READY", "pipeline 1 UNAVAILABLE unloaded", "scale 1 READY");

            load(server, "pipeline");
            unloadWithNeeded(server, "pipeline");
            awaitIndex(
                    server,
                    "net 1 READY",
                    "other 1 READY",
                    "pipeline 1 UNAVAILABLE unloaded",
                    "scale 1 UNAVAILABLE unloaded");
        }
    }

    /** Unloading a model unloads the ensembles that use it; loading it again loads them again. */
    @Test
    void unloadsAndLoadsWithAStep() throws Exception {
        chain("pipeline", "scale", "net");
        try (NereidServer server = NereidServer.start(options())) {
            load(server, "pipeline");

            unload(server, "scale");
            awaitIndex(
                    server,
                    "net 1 READY",
                    "other UNKNOWN",
                    "pipeline 1 UNAVAILABLE unloaded",
                    "scale 1 UNAVAILABLE unloaded");

            load(server, "scale");
            assertThat(index(server)).contains("pipeline 1 READY", "scale 1 READY");
        }
    }

    @Test
    void keepsWhatAnotherModelNeeds() throws Exception {
        chain("first", "scale", "scale");
        chain("second", "scale", "net");
        try (NereidServer server = NereidServer.start(options())) {
            load(server, "first");
            load(server, "second");

            unloadWithNeeded(server, "second");
            awaitIndex(
                    server,
                    "first 1 READY",
                    "net 1 UNAVAILABLE unloaded",
                    "other UNKNOWN",
                    "scale 1 READY",
                    "second 1 UNAVAILABLE unloaded");

            unloadWithNeeded(server, "first");
            assertThat(index(server)).noneMatch(line -> line.contains("READY"));
        }
    }

    @Test
    void refusesModelsThatNeedEachOther() throws Exception {
        ensemble(models, "a", "b");
        ensemble(models, "b", "c", "scale");
        ensemble(models, "c", "a");
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server, "a"))
                    .hasMessageEndingWith("circular dependency between ensembles: c -> a -> b -> c");
            assertThat(index(server))
                    .contains(
                            "c UNAVAILABLE Invalid argument: circular dependency between ensembles: c -> a -> b -> c");
            assertThat(server.isReady()).isTrue();
        }
    }

    @Test
    void namesTheModelThatIsMissing() throws Exception {
        ensemble(models, "pipeline", "nope", "scale");
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server, "pipeline"))
                    .hasMessage("ensemble 'pipeline' depends on 'nope' which has no loaded version. Model 'nope'"
                            + " loading failed with error: failed to load 'nope', failed to poll from model"
                            + " repository (found no directory 'nope' in it).");
            assertThat(index(server)).noneMatch(line -> line.startsWith("nope"));
        }
    }

    @Test
    void suggestsTheModelThatAMisspeltStepMeans() throws Exception {
        ensemble(models, "pipeline", "scael", "scale");
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server, "pipeline"))
                    .hasMessageEndingWith("(found no directory 'scael' in it). Did you mean 'scale'?");
        }
    }

    /** All models of the start are loaded, in whatever order. */
    @Test
    void loadsThemWithAllModels() throws Exception {
        chain("a_pipeline", "scale", "net");
        try (NereidServer server = NereidServer.start(options().with(o -> {
            o.exitOnError = false;
            o.controlMode = ModelControlMode.NONE;
        }))) {
            assertThat(index(server))
                    .containsExactly("a_pipeline 1 READY", "net 1 READY", "other 1 READY", "scale 1 READY");
        }
        assertThat(Files.readAllLines(directory.resolve("events")).stream().filter(line -> line.startsWith("load ")))
                .as("each once")
                .hasSize(3);
    }

    /** The repository of its ensemble is searched for a step first, then all others. */
    @Test
    void searchesItsNamespaceFirst() throws Exception {
        TestModels others = new TestModels(Files.createDirectories(directory.resolve("others")));
        others.recording("scale", "", 2).recording("elsewhere", "");
        chain("pipeline", "scale", "elsewhere");
        TestModels third = new TestModels(Files.createDirectories(directory.resolve("third")));
        ensemble(third, "lost", "scale", "nope", "net");
        ServerOptions options = options().with(o -> {
            o.modelRepositories = List.of(models.root(), others.root(), third.root());
            o.hasNamespaces = true;
        });
        try (NereidServer server = NereidServer.start(options)) {
            load(server, "pipeline");
            assertThat(index(server))
                    .contains("elsewhere 1 READY", "pipeline 1 READY", "scale 1 READY", "scale UNKNOWN")
                    .doesNotContain("scale 2 READY");

            assertThatThrownBy(() -> load(server, "lost"))
                    .hasMessage("ensemble lost contains models that are not available or ambiguous: nope, scale");
        }
    }

    private ServerOptions options() {
        return ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.explicit();
                    o.processors = 2;
                });
    }
}
