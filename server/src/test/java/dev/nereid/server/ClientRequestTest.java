package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.ClientRequest;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.ResponseObserver;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;

/** Requests of an embedding program that one response completes. */
@Timeout(value = 60, threadMode = Timeout.ThreadMode.SEPARATE_THREAD)
final class ClientRequestTest {
    private static final Shape SHAPE = Shape.of(1, 3);

    @TempDir
    private Path directory;

    @BeforeEach
    void setUp() throws Exception {
        TestPlugins.twice(Files.createDirectories(directory.resolve("plugins")));
        TestModels models = new TestModels(Files.createDirectories(directory.resolve("models")));
        String tensors = """
                backend: "twice"
                max_batch_size: 8
                input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
                output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
                """;
        models.model("twice", tensors, 1, 2);
        models.model("old", tensors + "version_policy { all {} }\n", 1, 2);
    }

    /** Its response may come while a device reads the inputs, and the close of the response frees those. */
    @Test
    void takesNoOutputInAnyPlace() throws Exception {
        try (NereidServer server = server()) {
            ClientRequest request = server.request("twice");
            assertThatThrownBy(() -> request.output(RequestedOutput.inAnyPlace("OUTPUT")))
                    .isInstanceOf(IllegalArgumentException.class)
                    .hasMessageContaining("InferenceServer.infer");
        }
    }

    @Test
    void waitsForTheResponse() throws Exception {
        try (NereidServer server = server()) {
            try (InferResponse response = server.request("twice")
                    .id("mine")
                    .input("INPUT", SHAPE, 1f, 2.5f, -3f)
                    .output("OUTPUT")
                    .sendAndWait()) {
                assertThat(numbers(response)).containsExactly(2, 5, -6);
                assertThat(response.id()).isEqualTo("mine");
                assertThat(response.version()).isEqualTo(2);
                assertThatThrownBy(() -> response.requireOutput("SCORES"))
                        .isInstanceOf(InferenceException.class)
                        .hasMessage("output 'SCORES': not in the response (it has: [OUTPUT])");
            }
            assertThat(server.memory().bytesInUse()).isZero();
        }
    }

    @Test
    void selectsAVersion() throws Exception {
        try (NereidServer server = server();
                InferResponse response = server.request("old")
                        .version(1)
                        .input("INPUT", SHAPE, 1, 2, 3)
                        .sendAndWait()) {
            assertThat(response.version()).isEqualTo(1);
        }
    }

    @Test
    void readsMemoryOutsideTheHeapInPlace() throws Exception {
        try (NereidServer server = server();
                Arena arena = Arena.ofShared()) {
            MemorySegment memory = arena.allocateFrom(ValueLayout.JAVA_FLOAT, 4, 5, 6);
            ClientRequest request = server.request("twice").input("INPUT", Tensor.of(DataType.FP32, SHAPE, memory));
            memory.setAtIndex(ValueLayout.JAVA_FLOAT, 0, 7);

            try (InferResponse response = request.sendAndWait()) {
                assertThat(numbers(response)).containsExactly(14, 10, 12);
            }
        }
    }

    @Test
    void failsAsTheServerSays() throws Exception {
        try (NereidServer server = server()) {
            assertThatThrownBy(() -> server.request("thrice").sendAndWait())
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.NOT_FOUND));
            assertThatThrownBy(() -> server.request("twice").sendAndWait())
                    .isInstanceOfSatisfying(
                            InferenceException.class, e -> assertThat(e.code()).isEqualTo(ErrorCode.INVALID_ARGUMENT));
            assertThatThrownBy(() -> server.request("twice").input("INPUT", SHAPE, 1f))
                    .isInstanceOf(IllegalArgumentException.class);
        }
    }

    @Test
    void isSentOnce() throws Exception {
        try (NereidServer server = server()) {
            ClientRequest request = server.request("twice").input("INPUT", SHAPE, 1, 2, 3);
            request.sendAndWait().close();

            assertThatThrownBy(request::send)
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessage("request to model 'twice': sent before (expected: sent once)");
        }
    }

    @Test
    void completesWithoutAWait() throws Exception {
        try (NereidServer server = server();
                InferResponse response = server.request("twice")
                        .input("INPUT", SHAPE, 1, 2, 3)
                        .send()
                        .toCompletableFuture()
                        .get(30, TimeUnit.SECONDS)) {
            assertThat(numbers(response)).containsExactly(2, 4, 6);
        }
    }

    @Test
    void waitsInNoObserver() throws Exception {
        try (NereidServer server = server()) {
            Waiting waiting = new Waiting(server);
            Tensor input =
                    Tensor.of(DataType.FP32, SHAPE, Arena.ofAuto().allocateFrom(ValueLayout.JAVA_FLOAT, 1, 2, 3));

            server.infer(
                    InferRequest.of(ModelRef.latest("twice"), List.of(InputTensor.of("INPUT", input)), () -> {}),
                    waiting);

            assertThat(waiting.thrown.get(30, TimeUnit.SECONDS))
                    .isInstanceOf(IllegalStateException.class)
                    .hasMessageStartingWith("sendAndWait: request to model 'twice' on thread '")
                    .hasMessageEndingWith(
                            "', which must not wait, since it calls observers of other requests (expected: send)");
            assertThat(server.mayWait()).isTrue();
        }
    }

    private NereidServer server() throws InterruptedException {
        return NereidServer.start(ServerOptions.of(directory.resolve("models"))
                .withPlugins(directory.resolve("plugins"))
                .withDirectories(directories -> directories.withPluginCache(directory.resolve("work"))));
    }

    private static float[] numbers(InferResponse response) {
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
                server.request("twice").sendAndWait().close();
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
