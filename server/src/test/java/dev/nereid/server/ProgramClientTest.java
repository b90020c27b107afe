package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.assertj.core.api.Assertions.assertThatIllegalArgumentException;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.ModelStatus;
import dev.nereid.api.ResponseObserver;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.net.URL;
import java.net.URLClassLoader;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Requests of the program that embeds the server. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class ProgramClientTest {
    private static final Shape SHAPE = Shape.of(1, 3);

    private static final String TENSORS = """
            backend: "twice"
            max_batch_size: 8
            input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
            output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
            """;

    @TempDir
    private Path directory;

    private TestModels models;

    @BeforeEach
    void setUp() throws Exception {
        TestPlugins.twice(Files.createDirectories(directory.resolve("plugins")));
        models = new TestModels(Files.createDirectories(directory.resolve("models")));
        models.model("twice", TENSORS, 1, 2);
        models.model("old", TENSORS + "version_policy { all {} }\n", 1, 2);
    }

    @Test
    void waitsForTheResponse() throws Exception {
        try (NereidServer server = server()) {
            try (ModelResponse response = server.client()
                    .request("twice")
                    .id("mine")
                    .input("INPUT", SHAPE, 1f, 2.5f, -3f)
                    .output("OUTPUT")
                    .sendAndWait()) {
                assertThat(numbers(response)).containsExactly(2, 5, -6);
                assertThat(response.id()).isEqualTo("mine");
                assertThat(response.version()).isEqualTo(2);
                assertThat(response.isFinal()).isTrue();
                assertThatExceptionOfType(BackendException.class)
                        .isThrownBy(() -> response.requireOutput("SCORES"))
                        .withMessage("output 'SCORES': not in the response (it has: [OUTPUT])");
            }
            assertThat(server.memory().bytesInUse()).isZero();
            assertThat(server.client()).isSameAs(server.client());
        }
    }

    @Test
    void selectsAVersion() throws Exception {
        try (NereidServer server = server();
                ModelResponse response = request(server, "old").version(1).sendAndWait()) {
            assertThat(response.version()).isEqualTo(1);
        }
    }

    @Test
    void readsMemoryOutsideTheHeapInPlaceAndCopiesArrays() throws Exception {
        try (NereidServer server = server();
                Arena arena = Arena.ofShared()) {
            assertThat(afterChange(server, arena.allocateFrom(ValueLayout.JAVA_FLOAT, 4, 5, 6)))
                    .containsExactly(14, 10, 12);
            assertThat(afterChange(server, MemorySegment.ofArray(new float[] {4, 5, 6})))
                    .containsExactly(8, 10, 12);
        }
    }

    /** Returns the response to a request for whose input the first number becomes 7 after it was added. */
    private static float[] afterChange(NereidServer server, MemorySegment memory) throws InterruptedException {
        ModelRequest request = server.client().request("twice").input("INPUT", Tensor.of(DataType.FP32, SHAPE, memory));
        memory.setAtIndex(ValueLayout.JAVA_FLOAT, 0, 7);
        try (ModelResponse response = request.sendAndWait()) {
            return numbers(response);
        }
    }

    @Test
    void failsAsTheServerSays() throws Exception {
        try (NereidServer server = server()) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> server.client().request("thrice").sendAndWait())
                    .withMessage("Request for unknown model: 'thrice' is not found")
                    .returns(ErrorCode.NOT_FOUND, BackendException::code);
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> server.client().request("twice").sendAndWait())
                    .returns(ErrorCode.INVALID_ARGUMENT, BackendException::code);
            assertThatIllegalArgumentException()
                    .isThrownBy(() -> server.client().request("twice").input("INPUT", SHAPE, 1f));
        }
    }

    @Test
    void isSentOnce() throws Exception {
        try (NereidServer server = server()) {
            ModelRequest request = request(server, "twice");
            request.sendAndWait().close();

            assertThatThrownBy(request::send)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("request to model 'twice': sent before (expected: sent once)");
        }
    }

    /** An action that waits for another response would wait for ever on a thread of the server. */
    @Test
    void actionsMayBlock() throws Exception {
        ClassLoader loader = new URLClassLoader(new URL[0]);
        Thread.currentThread().setContextClassLoader(loader); // the thread is that of this test
        try (NereidServer server = server()) {
            CompletionStage<float[]> added = request(server, "twice").send().thenApply(first -> {
                try (first;
                        ModelResponse second = request(server, "old").sendAndWait()) {
                    assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(loader);
                    assertThat(first.requireOutput("OUTPUT").floats()).isEqualTo(numbers(second));
                    return numbers(second);
                } catch (InterruptedException e) {
                    throw new AssertionError(e);
                }
            });

            assertThat(added.toCompletableFuture().get(30, TimeUnit.SECONDS)).containsExactly(2, 4, 6);
            assertThatThrownBy(() -> server.client()
                            .request("thrice")
                            .send()
                            .toCompletableFuture()
                            .get(30, TimeUnit.SECONDS))
                    .hasRootCauseInstanceOf(InferenceException.class);
            assertThat(Thread.currentThread().getContextClassLoader()).isSameAs(loader);
        }
    }

    @Test
    void waitsInNoObserver() throws Exception {
        try (NereidServer server = server()) {
            Waiting waiting = new Waiting(server);
            InputTensor input = InputTensor.of("INPUT", Tensor.ofFloats(SHAPE, 1, 2, 3));

            server.infer(InferRequest.of(ModelRef.latest("twice"), List.of(input), () -> {}), waiting);

            assertThat(waiting.thrown.get(30, TimeUnit.SECONDS))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageStartingWith("sendAndWait: request to model 'twice' on thread '")
                    .hasMessageEndingWith(
                            "', which must not block, since it calls observers of other requests (expected: send)");
        }
    }

    @Test
    void loadsAndUnloadsModels() throws Exception {
        try (NereidServer server = NereidServer.start(options().with(o -> o.explicit("twice")))) {
            assertThat(server.client().isReady("old")).isFalse();
            server.client().load("old").toCompletableFuture().get(30, TimeUnit.SECONDS);
            assertThat(server.client().isReady("old", 1)).isTrue();
            request(server, "old").sendAndWait().close();
            server.client().unload("old").toCompletableFuture().get(30, TimeUnit.SECONDS);
            assertThat(server.client().isReady("old")).isFalse();
        }
    }

    @Test
    void knowsWhichVersionsAreDecoupled() throws Exception {
        TestPlugins.recording(directory.resolve("plugins"));
        models.recording("stream", "model_transaction_policy { decoupled: true }\n");
        try (NereidServer server = server()) {
            assertThat(server.client().isDecoupled("stream", 1)).isTrue();
            assertThat(server.client().isDecoupled("stream", -1)).isTrue();
            assertThat(server.client().isDecoupled("twice", -1)).isFalse();
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> server.client().isDecoupled("twice", 3))
                    .returns(ErrorCode.NOT_FOUND, BackendException::code);
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> server.client().isDecoupled("thrice", -1))
                    .withMessage("Request for unknown model: 'thrice' is not found");
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> server.client().isDecoupled("twice", -2))
                    .withMessage("version of model 'twice': -2 (expected: >= -1)");
        }
    }

    /** The model's own error, and a cancellation, are no refusals. */
    @Test
    void tellsRefusalsFromErrors() throws Exception {
        TestPlugins.recording(directory.resolve("plugins"));
        models.recording("failing", TestModels.parameter("fail_execute", "failing_0_0"));
        try (NereidServer server = server()) {
            assertThat(end(server.client().request("thrice")))
                    .isEqualTo("refused: Request for unknown model: 'thrice' is not found");
            assertThat(end(server.client().request("twice")))
                    .startsWith("refused: ")
                    .contains("expected 1 inputs but got 0 inputs");
            assertThat(end(request(server, "twice").output("OUTPUT", new MemoryPlace(MemoryPlace.Kind.GPU, 0))))
                    .startsWith("refused: output 'OUTPUT': no memory of");
            ModelRequest cancelled = request(server, "twice");
            cancelled.cancel();
            assertThat(end(cancelled)).startsWith("error: ");
            assertThat(end(server.client().request("failing").input("INPUT0", Shape.of(1, 1), 1f)))
                    .startsWith("error: broken failing_0_0");
            assertThat(end(request(server, "twice"))).isEqualTo("completed");
        }
    }

    private static String end(ModelRequest request) throws Exception {
        CompletableFuture<String> end = new CompletableFuture<>();
        request.send(new ModelResponseObserver() {
            @Override
            public void onResponse(ModelResponse response) {
                response.close();
            }

            @Override
            public void onCompleted() {
                end.complete("completed");
            }

            @Override
            public void onError(BackendException error) {
                end.complete("error: " + error.getMessage());
            }

            @Override
            public void onRefused(BackendException error) {
                end.complete("refused: " + error.getMessage());
            }
        });
        return end.get(30, TimeUnit.SECONDS);
    }

    @Test
    void serversOfOneProgramHaveTheirOwnModels() throws Exception {
        try (NereidServer server = server();
                NereidServer other =
                        NereidServer.start(ServerOptions.of(Files.createDirectories(directory.resolve("none")))
                                .with(o -> o.pluginCache = directory.resolve("other")));
                ModelResponse response = request(server, "twice").sendAndWait()) {
            assertThatExceptionOfType(BackendException.class)
                    .isThrownBy(() -> request(other, "twice").sendAndWait())
                    .returns(ErrorCode.NOT_FOUND, BackendException::code);
            assertThat(numbers(response)).containsExactly(2, 4, 6);
        }
    }

    @Tag("slow")
    @Test
    void aForgottenResponseIsReleasedAndNamed() throws Exception {
        NereidServer server = server();
        assertThat(request(server, "twice").sendAndWait().outputs()).containsExactly("OUTPUT");
        server.close();

        assertThat(server.forgotten())
                .containsExactly("the program: a response of model 'twice' was not closed, and the server released it"
                        + " (expected: ModelResponse.close, such as by try-with-resources)");
        assertThat(server.memory().bytesInUse()).isZero();
    }

    @Test
    void anUnloadWaitsForResponsesOfTheProgram() throws Exception {
        try (NereidServer server = NereidServer.start(options().with(o -> o.explicit("twice")))) {
            try (ModelResponse response = request(server, "twice").sendAndWait()) {
                server.client().unload("twice");
                while (!reasons(server).contains("waits for responses that are not closed: 1 held by the program")) {
                    Thread.onSpinWait();
                }
                assertThat(numbers(response)).containsExactly(2, 4, 6);
            }
            while (server.memory().bytesInUse() > 0) {
                Thread.onSpinWait();
            }
            assertThat(server.forgotten()).isEmpty();
        }
    }

    @Test
    void aStopThatWaitsInVainFreesNothing() throws Exception {
        NereidServer server = server();
        try (ModelResponse response = request(server, "twice").sendAndWait()) {
            assertThatExceptionOfType(InferenceException.class)
                    .isThrownBy(() -> server.closeWithin(Duration.ofMillis(100)))
                    .withMessageContaining("Exit timeout expired");
            assertThat(numbers(response)).containsExactly(2, 4, 6);
        }
        assertThatExceptionOfType(BackendException.class)
                .isThrownBy(() -> request(server, "twice").sendAndWait())
                .withMessage("Server not ready");
    }

    private static List<String> reasons(NereidServer server) {
        return server.models().index().stream().map(ModelStatus::reason).toList();
    }

    private ServerOptions options() {
        return ServerOptions.of(directory.resolve("models"))
                .withPlugins(directory.resolve("plugins"))
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> o.pluginCache = directory.resolve("work"));
    }

    private NereidServer server() throws InterruptedException {
        return NereidServer.start(options());
    }

    private static ModelRequest request(NereidServer server, String model) {
        return server.client().request(model).input("INPUT", SHAPE, 1f, 2f, 3f);
    }

    private static float[] numbers(ModelResponse response) {
        return response.requireOutput("OUTPUT").floats();
    }

    /** Waits for another response where it must not. */
    private record Waiting(NereidServer server, CompletableFuture<Throwable> thrown) implements ResponseObserver {
        Waiting(NereidServer server) {
            this(server, new CompletableFuture<>());
        }

        @Override
        public void onResponse(InferResponse response) {
            response.close();
            try {
                request(server, "twice").sendAndWait().close();
            } catch (InterruptedException | RuntimeException e) {
                thrown.complete(e);
            }
        }

        @Override
        public void onCompleted() {}

        @Override
        public void onError(InferenceException error) {
            thrown.complete(error);
        }
    }
}
