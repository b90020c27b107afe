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
 * Models that need others. No ensemble can be served so far, but what it needs is loaded and unloaded with it. The orders
 * of loads and unloads are in {@code ModelDependenciesTest}.
 */
@Timeout(120)
final class ModelDependencyTest {
    private static final String REFUSED = "UNAVAILABLE Unsupported: ensemble scheduling is not supported by this"
            + " version, model '%s' requires it";

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
        ensemble(models, "inner", "scale");
        ensemble(models, "outer", "inner", "net");
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server, "inner")).hasMessageContaining("ensemble scheduling");

            assertThat(index(server))
                    .containsExactly(
                            "inner " + REFUSED.formatted("inner"),
                            "net UNKNOWN",
                            "other UNKNOWN",
                            "outer UNKNOWN",
                            "scale 1 READY");

            assertThatThrownBy(() -> load(server, "outer"))
                    .hasMessageStartingWith("ensemble 'outer' depends on 'inner' which has no loaded version. Model"
                            + " 'inner' loading failed with error: failed to load 'inner', failed to poll from model"
                            + " repository: ensemble scheduling is not supported");
            assertThat(index(server)).contains("net 1 READY", "scale 1 READY", "other UNKNOWN");
        }
    }

    @Test
    void unloadsWhatOnlyTheModelNeeded() throws Exception {
        ensemble(models, "pipeline", "scale", "net");
        try (NereidServer server = NereidServer.start(options())) {
            load(server, "net"); // for its own sake
            load(server, "other");
            assertThatThrownBy(() -> load(server, "pipeline")).hasMessageContaining("ensemble scheduling");
            assertThat(index(server)).contains("net 1 READY", "other 1 READY", "scale 1 READY");

            unload(server, "pipeline");
            assertThat(index(server)).contains("net 1 READY", "other 1 READY", "scale 1 READY");

            assertThatThrownBy(() -> load(server, "pipeline")).hasMessageContaining("ensemble scheduling");
            unloadWithNeeded(server, "pipeline");
            awaitIndex(server, "net 1 READY", "other 1 READY", "pipeline UNKNOWN", "scale 1 UNAVAILABLE unloaded");
        }
    }

    @Test
    void keepsWhatAnotherModelNeeds() throws Exception {
        ensemble(models, "first", "scale");
        ensemble(models, "second", "scale", "net");
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server, "first")).hasMessageContaining("ensemble scheduling");
            assertThatThrownBy(() -> load(server, "second")).hasMessageContaining("ensemble scheduling");

            unloadWithNeeded(server, "second");
            awaitIndex(
                    server,
                    "first " + REFUSED.formatted("first"),
                    "net 1 UNAVAILABLE unloaded",
                    "other UNKNOWN",
                    "scale 1 READY",
                    "second UNKNOWN");

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
            assertThat(server.isReady()).isFalse();
        }
    }

    @Test
    void namesTheModelThatIsMissing() throws Exception {
        ensemble(models, "pipeline", "nope", "scale");
        try (NereidServer server = NereidServer.start(options())) {
            assertThatThrownBy(() -> load(server, "pipeline"))
                    .hasMessage("ensemble 'pipeline' depends on 'nope' which has no loaded version. Model 'nope'"
                            + " loading failed with error: failed to load 'nope', failed to poll from model"
                            + " repository");
            assertThat(index(server)).noneMatch(line -> line.startsWith("nope"));
        }
    }

    /** All models of the start are loaded, in whatever order. */
    @Test
    void loadsThemWithAllModels() throws Exception {
        ensemble(models, "a_pipeline", "scale", "net");
        try (NereidServer server = NereidServer.start(options()
                .withLifecycle(lifecycle -> lifecycle
                        .withExitOnError(false)
                        .withControl(control -> control.withMode(ModelControlMode.NONE))))) {
            assertThat(index(server))
                    .containsExactly(
                            "a_pipeline " + REFUSED.formatted("a_pipeline"),
                            "net 1 READY",
                            "other 1 READY",
                            "scale 1 READY");
        }
        assertThat(Files.readAllLines(directory.resolve("events")).stream().filter(line -> line.startsWith("load ")))
                .as("each once")
                .hasSize(3);
    }

    /** A step is looked for in the repository of its ensemble first, then anywhere. */
    @Test
    void looksInItsOwnNamespaceFirst() throws Exception {
        TestModels others = new TestModels(Files.createDirectories(directory.resolve("others")));
        others.recording("scale", "", 2).recording("elsewhere", "");
        ensemble(models, "pipeline", "scale", "elsewhere");
        TestModels third = new TestModels(Files.createDirectories(directory.resolve("third")));
        ensemble(third, "lost", "scale", "nope", "net");
        ServerOptions options = options()
                .withDirectories(directories -> directories
                        .withModelRepositories(List.of(models.root(), others.root(), third.root()))
                        .withNamespaces(true));
        try (NereidServer server = NereidServer.start(options)) {
            assertThatThrownBy(() -> load(server, "pipeline")).hasMessageContaining("ensemble scheduling");
            assertThat(index(server))
                    .contains("elsewhere 1 READY", "scale 1 READY", "scale UNKNOWN")
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
                .withLifecycle(lifecycle -> lifecycle.withControl(control -> control.withExplicit()))
                .withModels(model -> model.withInstances(instances -> instances.withProcessors(2)));
    }
}
