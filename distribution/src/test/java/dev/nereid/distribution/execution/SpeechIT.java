package dev.nereid.distribution.execution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import ai.onnxruntime.OrtException;
import dev.nereid.distribution.testing.ClientRequest;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.Recording;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.SpeechModel;
import dev.nereid.distribution.testing.TensorBytes;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ModelStreamInferResponse;
import io.grpc.ManagedChannel;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/**
 * A voice-activity detector whose state the server keeps. Eight speakers, who send the chunks of one recording from
 * different places on, get the same probabilities as without a server.
 */
@Tag("slow")
class SpeechIT {
    private static final String OLDEST = "silero_vad";
    private static final String DIRECT = "silero_direct";
    private static final int SPEAKERS = 8;
    private static final int SHIFT_SAMPLES = 3_333;
    private static final float MAX_DIFFERENCE = 1e-5f;
    private static final long TIMEOUT_SECONDS = 120;

    /** The chunks of each speaker: ten seconds. {@code -Dnereid.test.chunks=5000} for nearly all of the recording. */
    private static final int CHUNKS = Integer.getInteger("nereid.test.chunks", 312);

    @TempDir
    private static Path directory;

    private static TestServer server;
    private static List<Recording> speakers;
    private static List<float[]> expected;

    @BeforeAll
    static void start() throws IOException, InterruptedException, OrtException {
        Path file = TestPaths.shared("models/silero_vad.onnx");
        Path audio = TestPaths.shared("audio/speech_8k.wav");
        Path example = TestPaths.checkout().resolve("examples/speech-models/" + OLDEST);
        assertThat(example.resolve("1/model.onnx")).hasSameBinaryContentAs(file);
        speakers = new ArrayList<>();
        expected = new ArrayList<>();
        for (int i = 0; i < SPEAKERS; i++) {
            Recording speaker = Recording.read(audio, i * SHIFT_SAMPLES, CHUNKS);
            speakers.add(speaker);
            expected.add(SpeechModel.probabilities(file, speaker));
        }
        String direct = Files.readString(example.resolve("config.pbtxt"))
                .replace("\"" + OLDEST + "\"", "\"" + DIRECT + "\"")
                .replaceFirst("oldest \\{[^}]*}", "direct { }")
                .replace("count: 1", "count: " + SPEAKERS);
        Repository models = new Repository(directory).copyOf(example).onnx(DIRECT, file, direct);
        server = TestServer.open(NereidServer.start(TestServer.of(models)));
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.close();
            assertThat(server.server().memory().bytesInUse()).isZero();
        }
    }

    @ParameterizedTest
    @ValueSource(strings = {OLDEST, DIRECT})
    void speakersShareAStream(String model) throws Exception {
        float[][] found = new float[SPEAKERS][CHUNKS];
        CompletableFuture<Integer> end = new CompletableFuture<>();
        ManagedChannel channel = server.grpc();
        try {
            StreamObserver<ModelInferRequest> stream =
                    GRPCInferenceServiceGrpc.newStub(channel).modelStreamInfer(new Responses(found, end));
            for (int chunk = 0; chunk < CHUNKS; chunk++) {
                for (int speaker = 0; speaker < SPEAKERS; speaker++) {
                    stream.onNext(request(model, speaker, chunk)
                            .withId(speaker + " " + chunk)
                            .overGrpc());
                }
            }
            stream.onCompleted();

            assertThat(end.get(TIMEOUT_SECONDS, TimeUnit.SECONDS)).isEqualTo(SPEAKERS * CHUNKS);
        } finally {
            channel.shutdownNow().awaitTermination(TIMEOUT_SECONDS, TimeUnit.SECONDS);
        }
        check(found);
    }

    @ParameterizedTest
    @ValueSource(strings = {OLDEST, DIRECT})
    void speakersHaveConnectionsOverHttp(String model) throws IOException {
        float[][] found = new float[SPEAKERS][CHUNKS];
        List<HttpConnection> connections = new ArrayList<>();
        try {
            for (int speaker = 0; speaker < SPEAKERS; speaker++) {
                connections.add(server.http());
            }
            for (int chunk = 0; chunk < CHUNKS; chunk++) {
                for (int speaker = 0; speaker < SPEAKERS; speaker++) {
                    byte[] request = request(model, speaker, chunk).overHttp();
                    connections.get(speaker).send(request, 0, request.length);
                }
                for (int speaker = 0; speaker < SPEAKERS; speaker++) {
                    var response = connections.get(speaker).read();
                    assertThat(response.status()).as(response::text).isEqualTo(200);
                    found[speaker][chunk] =
                            TensorBytes.toFloats(response.binaryOutputs().get("output"))[0];
                }
            }
        } finally {
            for (HttpConnection connection : connections) {
                connection.close();
            }
        }
        check(found);
    }

    private static ClientRequest request(String model, int speaker, int chunk) {
        return ClientRequest.of(model)
                .input("input", "FP32", TensorBytes.floats(speakers.get(speaker).chunk(chunk)), 1, Recording.INPUT)
                .input("sr", "INT64", TensorBytes.longs(Recording.SAMPLES_PER_SECOND), 1)
                .inSequence(1 + speaker, chunk == 0, chunk == CHUNKS - 1);
    }

    private static void check(float[][] found) {
        for (int speaker = 0; speaker < SPEAKERS; speaker++) {
            for (int chunk = 0; chunk < CHUNKS; chunk++) {
                assertThat(found[speaker][chunk])
                        .as("speaker %d, chunk %d", speaker, chunk)
                        .isCloseTo(expected.get(speaker)[chunk], within(MAX_DIFFERENCE));
            }
            float[] sorted = found[speaker].clone();
            Arrays.sort(sorted);
            assertThat(sorted[0]).as("silence").isLessThan(0.1f);
            assertThat(sorted[CHUNKS - 1]).as("speech").isGreaterThan(0.9f);
        }
    }

    /** Writes each probability to its place; the future gets their number. Called by one thread at a time. */
    private static final class Responses implements StreamObserver<ModelStreamInferResponse> {
        private final float[][] found;
        private final CompletableFuture<Integer> end;
        private int count;

        Responses(float[][] found, CompletableFuture<Integer> end) {
            this.found = found;
            this.end = end;
        }

        @Override
        public void onNext(ModelStreamInferResponse message) {
            if (!message.getErrorMessage().isEmpty()) {
                end.completeExceptionally(new AssertionError(message.getErrorMessage()));
                return;
            }
            ModelInferResponse response = message.getInferResponse();
            String[] place = response.getId().split(" ", 2);
            found[Integer.parseInt(place[0])][Integer.parseInt(place[1])] =
                    TensorBytes.toFloats(response.getRawOutputContents(0).toByteArray())[0];
            count++;
        }

        @Override
        public void onError(Throwable failure) {
            end.completeExceptionally(failure);
        }

        @Override
        public void onCompleted() {
            end.complete(count);
        }
    }
}
