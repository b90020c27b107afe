package dev.nereid.server;

import static dev.nereid.server.TestModels.parameter;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.plugin.PluginJar;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Tests that plugins which do not end senders or leases hold up neither requests nor unloads nor the stop. */
@Tag("slow")
@Timeout(45)
final class ForgottenSenderTest {
    /** Longer than any test. */
    private static final Duration EXIT_TIMEOUT = Duration.ofMinutes(1);

    private static final String PLUGIN = """
            package forgetful;

            import dev.nereid.spi.*;
            import java.util.*;
            import java.util.concurrent.*;

            public final class Forgetful implements BackendProvider {
                private static final List<Object> KEPT = new CopyOnWriteArrayList<>();

                public String name() { return "forgetful"; }

                public Backend create(BackendContext context) {
                    return Forgetful::load;
                }

                private static Model load(ModelContext model) {
                    String mode = model.parameters().required("mode");
                    return instance -> batch -> batch.requests().forEach(request -> execute(mode, request));
                }

                private static void execute(String mode, InferenceRequest request) {
                    switch (mode) {
                        case "forget" -> request.sender();
                        case "keep" -> {
                            ResponseSender sender = request.sender();
                            InferenceResponse response = sender.newResponse();
                            response.putFloats("OUTPUT0", Shape.of(1, 1), 3);
                            KEPT.add(sender); // first: the test goes on with the response
                            sender.send(response);
                        }
                        case "end" -> {
                            request.response().putFloats("OUTPUT0", Shape.of(1, 1), 3);
                            for (Object one : KEPT) {
                                if (one instanceof ResponseSender sender) {
                                    sender.complete();
                                } else {
                                    ((Runnable) one).run();
                                }
                            }
                            KEPT.clear();
                        }
                        default -> {
                            Runnable lease = request.leaseInputs();
                            if (mode.equals("keep_lease")) {
                                KEPT.add(lease);
                            }
                            request.response().putFloats("OUTPUT0", Shape.of(1, 1), 3);
                        }
                    }
                }
            }
            """;

    @TempDir
    private Path directory;

    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        PluginJar.of(PLUGIN).provider("forgetful.Forgetful").write(plugins.resolve("forgetful.jar"));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
    }

    @Test
    void aRequestFailsWhoseSenderIsForgotten() throws Exception {
        model("stream", "forget", true);
        model("single", "forget", false);
        try (NereidServer server = start()) {
            for (String model : new String[] {"stream", "single"}) {
                RecordingObserver observer = RecordingObserver.to(server, model, 3);
                while (!observer.isFailed()) {
                    System.gc();
                }
                assertThat(observer.error().code()).isEqualTo(ErrorCode.INTERNAL);
                assertThat(observer.error().publicMessage())
                        .isEqualTo("model '" + model + "': its plugin forgot the sender of the request (expected:"
                                + " ResponseSender.complete or fail)");
            }
            assertThat(server.forgotten())
                    .containsExactly(
                            "model 'stream', version 1, plugin 'forgetful': a sender of a request was not ended, and the"
                                    + " server ended it (expected: ResponseSender.complete or fail)",
                            "model 'single', version 1, plugin 'forgetful': a sender of a request was not ended, and the"
                                    + " server ended it (expected: ResponseSender.complete or fail)");
        }
    }

    @Test
    void anUnloadDoesNotWaitForForgottenSenders() throws Exception {
        model("stream", "forget", true);
        try (NereidServer server = start()) {
            RecordingObserver.to(server, "stream", 3);
            RecordingObserver.to(server, "stream", 3).cancel();

            TestControl.unload(server, "stream");

            TestControl.awaitIndex(server, "stream 1 UNAVAILABLE unloaded");
            assertThat(server.forgotten())
                    .first()
                    .asString()
                    .startsWith("model 'stream', version 1, plugin 'forgetful': a sender of a request was not ended");
        }
    }

    @Test
    void aStopDoesNotWaitForForgottenSenders() throws Exception {
        model("stream", "forget", true);
        model("lease", "forget_lease", false);
        NereidServer server = start();
        RecordingObserver observer = RecordingObserver.to(server, "stream", 3);
        RecordingObserver.to(server, "lease", 3).response();

        server.close(); // waits for a minute otherwise, and fails

        assertThat(observer.error().code()).isEqualTo(ErrorCode.INTERNAL);
        assertThat(server.forgotten()).hasSize(2);
        assertThat(server.memory().bytesInUse()).isZero();
    }

    @Test
    void theIndexNamesSendersThatThePluginKeeps() throws Exception {
        model("stream", "keep", true);
        model("ender", "end", false);
        try (NereidServer server = start()) {
            RecordingObserver gone = RecordingObserver.to(server, "stream", 3);
            RecordingObserver connected = RecordingObserver.to(server, "stream", 4);
            gone.response(); // so that it is executed
            connected.response();
            gone.cancel();

            TestControl.unload(server, "stream");

            TestControl.awaitIndex(
                    server,
                    "ender 1 READY",
                    "stream 1 UNLOADING waits for senders that are not ended: 1 of plugin 'forgetful'");
            connected.cancel();
            TestControl.awaitIndex(
                    server,
                    "ender 1 READY",
                    "stream 1 UNLOADING waits for senders that are not ended: 2 of plugin 'forgetful'");
            RecordingObserver.to(server, "ender", 3).response();
            TestControl.awaitIndex(server, "ender 1 READY", "stream 1 UNAVAILABLE unloaded");
            assertThat(server.forgotten()).isEmpty();
        }
    }

    @Test
    void aLeaseIsEndedThatIsForgotten() throws Exception {
        model("lease", "forget_lease", false);
        try (NereidServer server = start()) {
            RecordingObserver.to(server, "lease", 3).response();

            TestControl.unload(server, "lease");

            TestControl.awaitIndex(server, "lease 1 UNAVAILABLE unloaded");
            assertThat(server.forgotten())
                    .containsExactly(
                            "model 'lease', version 1, plugin 'forgetful': a lease on the inputs of a request was"
                                    + " not ended, and the server ended it (expected: to run what"
                                    + " InferenceRequest.leaseInputs returned)");
        }
    }

    @Test
    void theIndexNamesLeasesThatThePluginKeeps() throws Exception {
        model("lease", "keep_lease", false);
        model("ender", "end", false);
        try (NereidServer server = start()) {
            RecordingObserver.to(server, "lease", 3).response();

            TestControl.unload(server, "lease");

            TestControl.awaitIndex(
                    server,
                    "ender 1 READY",
                    "lease 1 UNLOADING waits for leases on inputs that are not ended: 1 of plugin 'forgetful'");
            RecordingObserver.to(server, "ender", 3).response();
            TestControl.awaitIndex(server, "ender 1 READY", "lease 1 UNAVAILABLE unloaded");
            assertThat(server.forgotten()).isEmpty();
        }
    }

    private void model(String name, String mode, boolean decoupled) {
        models.model(
                name,
                "backend: \"forgetful\"\nmax_batch_size: 8\n" + TestModels.TENSORS
                        + "instance_group { count: 1 kind: KIND_CPU }\n"
                        + (decoupled ? "model_transaction_policy { decoupled: true }\n" : "")
                        + parameter("mode", mode));
    }

    private NereidServer start() throws Exception {
        return NereidServer.start(ServerOptions.of(directory.resolve("models"))
                .withPlugins(directory.resolve("plugins"))
                .with(o -> {
                    o.explicit("*");
                    o.exitTimeout = EXIT_TIMEOUT;
                    o.processors = 2;
                }));
    }
}
