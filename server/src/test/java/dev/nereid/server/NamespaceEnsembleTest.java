package dev.nereid.server;

import static dev.nereid.server.TestControl.awaitIndex;
import static dev.nereid.server.TestControl.index;
import static dev.nereid.server.TestControl.load;
import static dev.nereid.server.TestControl.unload;
import static dev.nereid.server.TestModels.TENSORS;
import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferenceException;
import dev.nereid.server.options.ModelControlMode;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/**
 * Ensembles of two namespaces, each with a step {@code s} in the own repository: {@code one_e} adds 10, {@code two_e}
 * adds 20. A step that is gone is executed by that of the other repository.
 */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class NamespaceEnsembleTest {
    @TempDir
    private Path directory;

    private Path plugins;
    private TestModels one;
    private TestModels two;

    @BeforeEach
    void setUp() throws IOException {
        plugins = Files.createDirectories(directory.resolve("plugins"));
        one = new TestModels(Files.createDirectories(directory.resolve("one")));
        two = new TestModels(Files.createDirectories(directory.resolve("two")));
        StepBackend.write(plugins);
        step(one, "10");
        step(two, "20");
        ensemble(one, "one_e", "s");
        ensemble(two, "two_e", "s");
    }

    @Test
    void followsTheRepositoriesInThePollMode() throws Exception {
        try (NereidServer server = NereidServer.start(options(ModelControlMode.POLL))) {
            assertThat(infer(server, "one_e")).isEqualTo(17);
            assertThat(infer(server, "two_e")).isEqualTo(27);

            Files.move(one.root().resolve("s"), directory.resolve("aside"));
            while (infer(server, "one_e") != 27) { // no request fails meanwhile
                Thread.onSpinWait();
            }
            awaitIndex(server, "one_e 1 READY", "s 1 READY", "two_e 1 READY");
            assertThat(infer(server, "two_e")).isEqualTo(27);
            assertThat(infer(server, "s")).isEqualTo(27);

            Files.move(directory.resolve("aside"), one.root().resolve("s"));
            while (infer(server, "one_e") != 17) {
                Thread.onSpinWait();
            }
            assertThat(infer(server, "two_e")).isEqualTo(27);
            assertThat(error(server, "s")).contains("to resolve ambiguity");
        }
    }

    @Test
    void unloadsAnEnsembleInThePollModeWhoseStepIsNowhere() throws Exception {
        try (NereidServer server = NereidServer.start(options(ModelControlMode.POLL))) {
            Files.move(one.root().resolve("s"), directory.resolve("aside"));
            while (infer(server, "one_e") != 27) {
                Thread.onSpinWait();
            }
            Files.move(two.root().resolve("s"), directory.resolve("other"));
            while (index(server).stream().anyMatch(line -> line.endsWith("READY"))) {
                Thread.onSpinWait();
            }

            Files.move(directory.resolve("aside"), one.root().resolve("s"));
            awaitReady(server, "one_e 1 READY", "s 1 READY", "two_e 1 READY");
            assertThat(infer(server, "one_e")).isEqualTo(17);
            assertThat(infer(server, "two_e")).as("linked to the other one").isEqualTo(17);
        }
    }

    @Test
    void relinksAnEnsembleThatIsLoadedAgain() throws Exception {
        try (NereidServer server = NereidServer.start(options(ModelControlMode.EXPLICIT))) {
            Files.move(one.root().resolve("s"), directory.resolve("aside"));
            load(server, "one_e");
            load(server, "two_e");
            assertThat(List.of(infer(server, "one_e"), infer(server, "two_e"), infer(server, "s")))
                    .containsExactly(27f, 27f, 27f);

            Files.move(directory.resolve("aside"), one.root().resolve("s"));
            load(server, "one_e");

            assertThat(infer(server, "one_e")).isEqualTo(17);
            assertThat(infer(server, "two_e")).isEqualTo(27);
            assertThat(error(server, "s")).contains("to resolve ambiguity");

            Files.move(one.root().resolve("s"), directory.resolve("aside"));
            load(server, "one_e");
            assertThat(infer(server, "one_e")).isEqualTo(27);
        }
    }

    @Test
    void loadsTheOwnStepOfAnEnsembleThatIsLinkedToAnother() throws Exception {
        try (NereidServer server = NereidServer.start(options(ModelControlMode.EXPLICIT))) {
            Files.move(one.root().resolve("s"), directory.resolve("aside"));
            load(server, "one_e");
            Files.move(directory.resolve("aside"), one.root().resolve("s"));

            load(server, "s");

            assertThat(infer(server, "one_e")).isEqualTo(17);
            unload(server, "s");
            assertThat(error(server, "one_e")).isNotEmpty();
            load(server, "s");
            assertThat(infer(server, "one_e")).isEqualTo(17);
        }
    }

    /** The tensors of the other one do not fit: the ensemble serves on with its own until that is unloaded. */
    @Test
    void refusesAStepOfTheOtherRepositoryThatDoesNotFit() throws Exception {
        two.model("s", model("step", TENSORS.replace("OUTPUT0", "OTHER") + parameter("add", "20")));
        ensemble(two, "two_e", "second");
        two.model("second", model("step", TENSORS + parameter("add", "20")));
        try (NereidServer server = NereidServer.start(options(ModelControlMode.EXPLICIT))) {
            load(server, "one_e");
            Files.move(one.root().resolve("s"), directory.resolve("aside"));

            assertThatThrownBy(() -> load(server, "one_e")).isInstanceOf(InferenceException.class);

            assertThat(infer(server, "one_e")).isEqualTo(17);
            unload(server, "s");
            assertThat(index(server)).as("is unloaded with its step").noneMatch("one_e 1 READY"::equals);
            while (!server.isReady()) { // while versions unload
                Thread.onSpinWait();
            }
            Files.move(directory.resolve("aside"), one.root().resolve("s"));
            load(server, "one_e");
            assertThat(infer(server, "one_e")).isEqualTo(17);
        }
    }

    @Test
    void unloadsAnEnsembleInThePollModeWhoseOtherStepDoesNotFit() throws Exception {
        two.model("s", model("step", TENSORS.replace("OUTPUT0", "OTHER") + parameter("add", "20")));
        ensemble(two, "two_e", "second");
        two.model("second", model("step", TENSORS + parameter("add", "20")));
        try (NereidServer server = NereidServer.start(options(ModelControlMode.POLL))) {
            assertThat(infer(server, "one_e")).isEqualTo(17);
            Files.move(one.root().resolve("s"), directory.resolve("aside"));
            awaitReady(server, "s 1 READY", "second 1 READY", "two_e 1 READY");

            Files.move(directory.resolve("aside"), one.root().resolve("s"));
            while (index(server).stream().noneMatch("one_e 1 READY"::equals)) {
                Thread.onSpinWait();
            }
            assertThat(infer(server, "one_e")).isEqualTo(17);
        }
    }

    /** All models of the name are unloaded: none of them is loaded again for an ensemble. */
    @Test
    void loadsNoOtherStepAtAnUnload() throws Exception {
        try (NereidServer server = NereidServer.start(options(ModelControlMode.EXPLICIT))) {
            load(server, "s");
            load(server, "one_e");
            load(server, "two_e");
            Files.move(one.root().resolve("s"), directory.resolve("aside"));

            unload(server, "s");

            assertThat(index(server)).noneMatch(line -> line.endsWith("READY"));
            Files.move(directory.resolve("aside"), one.root().resolve("s"));
            load(server, "s");
            assertThat(List.of(infer(server, "one_e"), infer(server, "two_e"))).containsExactly(17f, 27f);
        }
    }

    private static void awaitReady(NereidServer server, String... lines) throws Exception {
        while (!index(server).stream()
                .filter(line -> line.endsWith("READY"))
                .toList()
                .equals(List.of(lines))) {
            Thread.onSpinWait();
        }
    }

    private static void step(TestModels repository, String added) {
        repository.model("s", model("step", TENSORS + parameter("add", added)));
    }

    private static void ensemble(TestModels repository, String name, String step) {
        repository.model(
                name,
                "platform: \"ensemble\"\nmax_batch_size: 8\n" + TENSORS
                        + EnsembleFixture.scheduling(EnsembleFixture.step(step, "INPUT0=INPUT0", "OUTPUT0=OUTPUT0")));
    }

    private static String model(String backend, String more) {
        return "backend: \"" + backend + "\"\nmax_batch_size: 8\ninstance_group { count: 1 kind: KIND_CPU }\n" + more;
    }

    private static float infer(NereidServer server, String model) {
        RecordingObserver observer = RecordingObserver.to(server, model, 7);
        return observer.response().values().getFirst();
    }

    private static String error(NereidServer server, String model) {
        return RecordingObserver.to(server, model, 7).error().publicMessage();
    }

    private ServerOptions options(ModelControlMode mode) {
        return ServerOptions.of(one.root(), two.root()).withPlugins(plugins).with(o -> {
            o.hasNamespaces = true;
            o.controlMode = mode;
            o.pollInterval = Duration.ofMillis(20);
            o.stabilityWindow = Duration.ofMillis(20);
            o.processors = 2;
        });
    }
}
