package dev.nereid.server;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatExceptionOfType;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.foreign.ValueLayout;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;
import org.assertj.core.api.ThrowableAssert.ThrowingCallable;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/** A server whose clients share memory, as a front end uses it. Needs the system's directory of segments. */
final class ClientSharedMemoryTest {
    private static final Path SEGMENTS = Path.of("/dev/shm");
    private static final int PAGE = 1 << 16;

    @TempDir
    private Path directory;

    private final String key = "nereid-test-" + ProcessHandle.current().pid();
    private NereidServer server;

    @BeforeEach
    void setUp() throws Exception {
        assumeTrue(Files.isWritable(SEGMENTS), SEGMENTS + " is not there");
        Path plugins = Files.createDirectories(directory.resolve("plugins"));
        TestPlugins.twice(plugins);
        TestPlugins.recording(plugins);
        TestModels models = new TestModels(Files.createDirectories(directory.resolve("models")))
                .model("twice", """
                        backend: "twice"
                        input { name: "INPUT" data_type: TYPE_FP32 dims: [ -1 ] }
                        output { name: "OUTPUT" data_type: TYPE_FP32 dims: [ -1 ] }
                        """)
                .model("words", "backend: \"recording\"\n" + TestModels.TENSORS.replace("FP32", "STRING"));
        server = NereidServer.start(ServerOptions.of(models.root())
                .withPlugins(plugins)
                .withBackendSetting(
                        "recording", "events", directory.resolve("events").toString())
                .with(o -> o.clientSharedMemory = true));
        cut(PAGE);
        server.sharedMemory().register("r", "/" + key, 0, PAGE);
    }

    @AfterEach
    void stop() throws IOException {
        server.close();
        Files.deleteIfExists(SEGMENTS.resolve(key));
        assertThat(server.memory().bytesInUse()).isZero();
    }

    @Test
    void readsInputsAndWritesOutputsWhereTheClientHasThem() throws Exception {
        try (TensorBuffer view = server.sharedMemory().lease("r", 0, 32)) {
            view.segment().setAtIndex(ValueLayout.JAVA_FLOAT, 0, 1.5f);
            view.segment().setAtIndex(ValueLayout.JAVA_FLOAT, 1, -2f);

            infer("twice", "INPUT", "FP32", 2, 0, 8, 16, 8);

            assertThat(view.segment().getAtIndex(ValueLayout.JAVA_FLOAT, 4)).isEqualTo(3f);
            assertThat(view.segment().getAtIndex(ValueLayout.JAVA_FLOAT, 5)).isEqualTo(-4f);
        }
    }

    @Test
    void reportsWhenTheOutputDoesNotFit() {
        assertError(
                () -> infer("twice", "INPUT", "FP32", 4, 0, 16, 32, 8),
                ErrorCode.INTERNAL,
                "shared memory size specified with the request for output 'OUTPUT' (8 bytes) should be at least 16 bytes"
                        + " to hold the results");
    }

    @Test
    void failsARequestWhoseSegmentWasTruncatedBeforeItRan() throws Exception {
        TensorBuffer in = server.sharedMemory().lease("r", 0, 8);
        TensorBuffer out = server.sharedMemory().lease("r", 8, 8);
        cut(0);

        assertError(
                () -> infer("twice", "INPUT", "FP32", 2, in, out),
                ErrorCode.INVALID_ARGUMENT,
                "shared memory of the request was truncated (expected: a segment of constant size while it is used)");
        assertError(
                () -> server.sharedMemory().lease("r", 0, 8),
                ErrorCode.INVALID_ARGUMENT,
                "shared memory region 'r': its segment ends 0 bytes behind the start of the region (expected: not before"
                        + " byte 8)");
        cut(PAGE);
        infer("twice", "INPUT", "FP32", 2, 0, 8, 16, 8);
    }

    @Test
    void checksByteStringsThatTheClientCanNoLongerChange() throws Exception {
        try (TensorBuffer view = server.sharedMemory().lease("r", 0, 64)) {
            view.segment().set(ValueLayout.JAVA_INT, 0, 2);

            infer("words", "INPUT0", "BYTES", 1, 0, 6, 32, 6);

            assertThat(view.segment().get(ValueLayout.JAVA_INT, 32)).isEqualTo(2);
            view.segment().set(ValueLayout.JAVA_INT, 0, 0);
            assertError(
                    () -> infer("words", "INPUT0", "BYTES", 1, 0, 6, 32, 6),
                    ErrorCode.INVALID_ARGUMENT,
                    "[request id: <id_unknown>] incomplete string length indicator for inference input 'INPUT0' for model"
                            + " 'words', expecting 4 bytes but only 2 bytes available. Please make sure the string length"
                            + " indicator is in one buffer.");
        }
        TensorBuffer in = server.sharedMemory().lease("r", 0, 8);
        TensorBuffer out = server.sharedMemory().lease("r", 8, 8);
        cut(0);
        assertError(
                () -> infer("words", "INPUT0", "BYTES", 1, in, out),
                ErrorCode.INVALID_ARGUMENT,
                "shared memory of the request was truncated (expected: a segment of constant size while it is used)");
    }

    @Test
    void keepsARegionThatIsUnregisteredWhileARequestUsesIt() throws Exception {
        TensorBuffer in = server.sharedMemory().lease("r", 0, 8);
        TensorBuffer out = server.sharedMemory().lease("r", 8, 8);

        server.sharedMemory().unregister("r");
        infer("twice", "INPUT", "FP32", 2, in, out);

        assertThat(server.sharedMemory().regions()).isEmpty();
    }

    private void infer(String model, String input, String type, long elements, long from, long size, long to, long room)
            throws Exception {
        TensorBuffer in = server.sharedMemory().lease("r", from, size);
        TensorBuffer out = server.sharedMemory().lease("r", to, room);
        infer(model, input, type, elements, in, out);
    }

    /** Runs a request to its end and the release of its memory. */
    private void infer(String model, String input, String type, long elements, TensorBuffer in, TensorBuffer out)
            throws Exception {
        CompletableFuture<Void> result = new CompletableFuture<>();
        CompletableFuture<Void> released = new CompletableFuture<>();
        InferRequest request = new InferRequest(
                ModelRef.latest(model),
                "",
                List.of(InputTensor.of(input, type, new long[] {elements}, in.segment(), MemoryPlace.HOST)),
                List.of(RequestedOutput.into(input.replace("INPUT", "OUTPUT"), out.segment())),
                Map.of(),
                RequestOptions.DEFAULT,
                () -> {
                    in.close();
                    out.close();
                    released.complete(null);
                });
        server.infer(request, new ResponseObserver() {
            @Override
            public void onResponse(InferResponse response) {
                assertThat(response.outputs().getFirst().tensor().data().address())
                        .isEqualTo(out.segment().address());
                response.close();
                result.complete(null);
            }

            @Override
            public void onCompleted() {
                result.completeExceptionally(new AssertionError("no response"));
            }

            @Override
            public void onError(InferenceException error) {
                result.completeExceptionally(error);
            }
        });
        released.get(30, TimeUnit.SECONDS);
        try {
            result.get(30, TimeUnit.SECONDS);
        } catch (ExecutionException e) {
            throw e.getCause() instanceof InferenceException error ? error : e;
        }
    }

    private static void assertError(ThrowingCallable action, ErrorCode code, String message) {
        assertThatExceptionOfType(InferenceException.class)
                .isThrownBy(action)
                .withMessage(message)
                .satisfies(error -> assertThat(error.code()).isEqualTo(code));
    }

    private void cut(int size) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(SEGMENTS.resolve(key).toFile(), "rw")) {
            file.setLength(size);
        }
    }
}
