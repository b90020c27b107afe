package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
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
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ArrayBlockingQueue;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicBoolean;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * Tests a client that truncates its shared memory while requests use it. It extends the memory again, repeatedly: some
 * requests fail, all complete, and the process survives. Runs with a backend in Java that works in that memory, and one
 * in native code.
 */
class ClientMemoryIT {
    private static final Path SEGMENTS = Path.of("/dev/shm");
    private static final String KEY = "nereid-it-" + ProcessHandle.current().pid();
    private static final int SIZE = 1 << 20;
    private static final int HALF = SIZE / 2;
    private static final int ROUNDS = 1_500;
    private static final int MANY = 32;
    private static final long TIMEOUT_SECONDS = 60;

    @TempDir
    private Path directory;

    private NereidServer server;

    @BeforeEach
    void start() throws Exception {
        assumeTrue(Files.isWritable(SEGMENTS), SEGMENTS + " is not there");
        Repository models = new Repository(directory)
                .model("echo", Repository.identity(64, "FP32", "[ 64 ]", "dynamic_batching { }\n"))
                .model("words", Repository.identity(64, "STRING", "[ -1 ]", ""))
                .copyOf(TestPaths.checkout().resolve("examples/models/digits"));
        server = NereidServer.start(TestServer.of(models).with(o -> o.clientSharedMemory = true));
        cut(SIZE);
        server.sharedMemory().register("r", KEY, 0, SIZE);
    }

    @AfterEach
    void stop() throws IOException {
        if (server == null) {
            return;
        }
        server.close();
        Files.deleteIfExists(SEGMENTS.resolve(KEY));
        assertThat(server.memory().bytesInUse()).isZero();
    }

    @Test
    void survivesAClientThatTakesItsMemoryAway() throws Exception {
        AtomicBoolean over = new AtomicBoolean();
        try (ExecutorService threads = Executors.newSingleThreadExecutor()) {
            Future<?> cutting = threads.submit(() -> {
                while (!over.get()) {
                    cut(0);
                    cut(SIZE);
                }
                return null;
            });
            try {
                // one request at a time, which is executed in the client's memory, and then several to a batch
                inferManyTimes(1);
                inferManyTimes(8);
            } finally {
                over.set(true);
                cutting.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
            }
        }

        cut(SIZE);
        for (String model : List.of("echo", "digits", "words")) {
            BlockingQueue<Optional<InferenceException>> outcomes = new ArrayBlockingQueue<>(1);
            infer(model, outcomes);
            assertThat(outcomes.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS))
                    .as(model)
                    .isEmpty();
        }
    }

    private void inferManyTimes(int atOnce) throws InterruptedException {
        List<String> models = List.of("echo", "digits", "words");
        for (int round = 0; round < ROUNDS; round += atOnce) {
            BlockingQueue<Optional<InferenceException>> outcomes = new ArrayBlockingQueue<>(atOnce);
            for (int i = 0; i < atOnce; i++) {
                infer(models.get(round / atOnce % models.size()), outcomes);
            }
            List<Optional<InferenceException>> all = new ArrayList<>();
            for (int i = 0; i < atOnce; i++) {
                all.add(outcomes.poll(TIMEOUT_SECONDS, TimeUnit.SECONDS));
            }
            assertThat(all).doesNotContainNull();
            assertThat(all.stream().flatMap(Optional::stream))
                    .extracting(InferenceException::code)
                    .allMatch(ErrorCode.INVALID_ARGUMENT::equals);
        }
    }

    /** Sends a request with input and output in the client's memory; delivers the error, or empty. */
    private void infer(String model, BlockingQueue<Optional<InferenceException>> outcomes) {
        TensorBuffer in;
        TensorBuffer out;
        try {
            in = server.sharedMemory().lease("r", 0, MANY * 256);
        } catch (InferenceException e) {
            outcomes.add(Optional.of(e));
            return;
        }
        try {
            out = server.sharedMemory().lease("r", HALF, HALF);
        } catch (InferenceException e) {
            in.close();
            outcomes.add(Optional.of(e));
            return;
        }
        server.infer(request(model, in, out), new ResponseObserver() {
            @Override
            public void onResponse(InferResponse response) {
                response.close();
                outcomes.add(Optional.empty());
            }

            @Override
            public void onCompleted() {
                throw new AssertionError("no response");
            }

            @Override
            public void onError(InferenceException error) {
                outcomes.add(Optional.of(error));
            }
        });
    }

    private static InferRequest request(String model, TensorBuffer in, TensorBuffer out) {
        InputTensor input = switch (model) {
            case "echo" -> input("INPUT0", "FP32", in, MANY, 64);
            case "digits" -> input("image", "FP32", in, MANY, 1, 8, 8);
            default -> input("INPUT0", "BYTES", in, 1, MANY * 64L);
        };
        String output = model.equals("digits") ? "probabilities" : "OUTPUT0";
        return new InferRequest(
                ModelRef.latest(model),
                "",
                List.of(input),
                List.of(RequestedOutput.into(output, out.segment())),
                Map.of(),
                RequestOptions.DEFAULT,
                () -> {
                    in.close();
                    out.close();
                });
    }

    private static InputTensor input(String name, String type, TensorBuffer data, long... shape) {
        return InputTensor.of(name, type, shape, data.segment(), MemoryPlace.HOST);
    }

    private static void cut(int size) throws IOException {
        try (RandomAccessFile file = new RandomAccessFile(SEGMENTS.resolve(KEY).toFile(), "rw")) {
            file.setLength(size);
        }
    }
}
