package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.statistics.HeldResponses;
import dev.nereid.server.options.ServerOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests that plugins which do not close the responses of other models hold up neither unloads nor the stop. */
@Tag("slow")
@Timeout(45)
final class ForgetfulPluginTest {
    /** Longer than any test. */
    private static final Duration EXIT_TIMEOUT = Duration.ofMinutes(1);

    private static final String HELD = "not closed, and the server released";

    @TempDir
    private Path directory;

    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.calling(plugins);
        TestPlugins.recording(plugins);
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        models.recording("a", "");
    }

    @Test
    void aModelIsUnloadedWhoseResponseIsForgotten() throws Exception {
        calling("forgetful", "forget", "a");
        try (NereidServer server = start()) {
            infer(server, "forgetful");
            infer(server, "forgetful");

            TestControl.unload(server, "a");

            TestControl.awaitIndex(server, "a 1 UNAVAILABLE unloaded", "forgetful 1 READY");
            while (server.forgotten().isEmpty()) {
                Thread.onSpinWait(); // the model is unloaded as soon as the last response is released
            }
            assertThat(server.forgotten())
                    .allMatch(sentence -> sentence.startsWith(
                            "model 'forgetful', version 1, plugin 'calling': a response of model 'a' was " + HELD));
        }
    }

    @Test
    void aModelIsUnloadedOnWhoseOutputALeaseIsForgotten() throws Exception {
        calling("forgetful", "forget_lease", "a");
        try (NereidServer server = start()) {
            infer(server, "forgetful");

            TestControl.unload(server, "a");

            TestControl.awaitIndex(server, "a 1 UNAVAILABLE unloaded", "forgetful 1 READY");
            while (server.forgotten().isEmpty()) {
                Thread.onSpinWait();
            }
            assertThat(server.forgotten())
                    .singleElement()
                    .asString()
                    .startsWith(
                            "model 'forgetful', version 1, plugin 'calling': a lease on an output of model 'a' was");
        }
    }

    @Test
    void theServerStopsWhileALeaseIsHeld() throws Exception {
        calling("keeper", "keep_lease", "a");
        NereidServer server = start();
        infer(server, "keeper");
        assertThat(server.models().heldResponses())
                .singleElement()
                .extracting(HeldResponses::open)
                .isEqualTo(1L);

        server.close(); // waits for a minute otherwise, and fails

        assertThat(server.memory().bytesInUse()).isZero();
        assertThat(server.forgotten()).hasSize(1);
    }

    /** Its memory is that of its step, which no plugin has called. */
    @Test
    void theServerStopsAfterAResponseOfAnEnsembleIsForgotten() throws Exception {
        models.model("pipe", "platform: \"ensemble\"\nmax_batch_size: 8\n" + TestModels.TENSORS + """
                        ensemble_scheduling { step [ {
                          model_name: "a" model_version: -1
                          input_map { key: "INPUT0" value: "INPUT0" }
                          output_map { key: "OUTPUT0" value: "OUTPUT0" }
                        } ] }
                        """);
        calling("forgetful", "forget", "pipe");
        NereidServer server = start();
        infer(server, "forgetful");

        server.close();

        assertThat(server.memory().bytesInUse()).isZero();
        assertThat(server.forgotten()).singleElement().asString().contains("a response of model 'pipe' was " + HELD);
    }

    @Test
    void theIndexNamesTheHolderUntilThatIsUnloaded() throws Exception {
        calling("keeper", "keep", "a");
        try (NereidServer server = start()) {
            infer(server, "keeper");
            infer(server, "keeper");
            assertThat(server.models().heldResponses())
                    .singleElement()
                    .extracting(held -> held.holder().name(), HeldResponses::open)
                    .containsExactly("keeper", 2L);

            TestControl.unload(server, "a");

            TestControl.awaitIndex(
                    server,
                    "a 1 UNLOADING waits for responses that are not closed: 2 held by model 'keeper', version 1, plugin"
                            + " 'calling'",
                    "keeper 1 READY");
            TestControl.unload(server, "keeper");
            TestControl.awaitIndex(server, "a 1 UNAVAILABLE unloaded", "keeper 1 UNAVAILABLE unloaded");
            assertThat(server.forgotten())
                    .containsExactly("model 'keeper', version 1, plugin 'calling': 2 responses of model 'a' were "
                            + HELD + " them (expected: ModelResponse.close, such as by try-with-resources)");
        }
    }

    @Test
    void modelsAreUnloadedThatHoldResponsesOfEachOther() throws Exception {
        calling("keeper", "keep", "chain");
        calling("chain", "keep", "a");
        try (NereidServer server = start()) {
            infer(server, "keeper");

            TestControl.unload(server, "a");
            TestControl.unload(server, "chain"); // holds the response of a, and its own is held
            TestControl.awaitIndex(
                    server,
                    "a 1 UNAVAILABLE unloaded",
                    "chain 1 UNLOADING waits for responses that are not closed: 1 held by model 'keeper', version 1, plugin"
                            + " 'calling'",
                    "keeper 1 READY");
            TestControl.unload(server, "keeper");

            TestControl.awaitIndex(
                    server,
                    "a 1 UNAVAILABLE unloaded",
                    "chain 1 UNAVAILABLE unloaded",
                    "keeper 1 UNAVAILABLE unloaded");
        }
    }

    @Test
    void aModelIsUnloadedThatDelaysItsRequests() throws Exception {
        models.recording(
                "slow", "dynamic_batching { max_queue_delay_microseconds: 3600000000 preferred_batch_size: 8 }\n");
        try (NereidServer server = start()) {
            RecordingObserver observer = RecordingObserver.to(server, "slow", 5);

            TestControl.unload(server, "slow"); // would wait for an hour

            assertThat(observer.response().values()).containsExactly(5f);
            TestControl.awaitIndex(server, "a 1 READY", "slow 1 UNAVAILABLE unloaded");
        }
    }

    @Test
    void theServerStopsWhileResponsesAreHeld() throws Exception {
        calling("keeper", "keep", "chain");
        calling("chain", "keep", "a");
        calling("forgetful", "forget", "a");
        NereidServer server = start();
        infer(server, "keeper");
        infer(server, "forgetful");

        server.close(); // waits for a minute otherwise, and fails

        assertThat(server.memory().bytesInUse()).isZero();
        assertThat(server.forgotten()).hasSize(3);
    }

    private static void infer(NereidServer server, String model) {
        assertThat(RecordingObserver.to(server, model, 3).response().values()).containsExactly(3f);
    }

    private void calling(String name, String mode, String to) {
        models.model(
                name,
                "backend: \"calling\"\nmax_batch_size: 8\n" + TestModels.TENSORS
                        + "instance_group { count: 1 kind: KIND_CPU }\n" + parameter("mode", mode)
                        + parameter("to", to));
    }

    private NereidServer start() throws Exception {
        return NereidServer.start(ServerOptions.of(directory.resolve("models"))
                .withPlugins(directory.resolve("plugins"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> {
                    o.explicit("*");
                    o.exitTimeout = EXIT_TIMEOUT;
                    o.poisonFreed = true;
                    o.processors = 2;
                }));
    }
}
