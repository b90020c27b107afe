package dev.nereid.distribution.execution;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.gson.JsonObject;
import com.google.gson.JsonParser;
import com.google.protobuf.ByteString;
import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.api.statistics.SequenceStatistics;
import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.InferParameter;
import inference.ModelInferRequest;
import inference.ModelInferRequest.InferInputTensor;
import inference.ModelStatisticsRequest;
import inference.ModelStreamInferResponse;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.FloatBuffer;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.List;
import java.util.SplittableRandom;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The language model of the examples: texts character by character, in batches of several clients. */
class CharLmIT {
    private static final int TIMEOUT_SECONDS = 60;
    private static final int SYMBOLS = 96;
    private static final int HIDDEN = 128;
    private static final String PROMPT = "The server ";

    @RegisterExtension
    private static final ServerExtension server =
            new ServerExtension(() -> ServerOptions.of(TestPaths.checkout().resolve("examples/plugin-models"))
                    .withPlugins(TestPaths.plugins()));

    @Test
    void aTextOverBothProtocolsIsThatOfALocalLoop() throws Exception {
        for (double temperature : new double[] {0, 0.7}) {
            String expected = local(80, temperature, 5);
            assertThat(overHttp(80, temperature, 5)).isEqualTo(expected);
            assertThat(overGrpc(80, temperature, 5)).isEqualTo(expected);
        }
        assertThat(overHttp(80, 0.7, 6)).isNotEqualTo(local(80, 0.7, 5));
    }

    @Test
    void clientsShareBatches() throws Exception {
        long before = rows(2);
        try (ExecutorService clients = Executors.newFixedThreadPool(8)) {
            List<Future<String>> texts = new ArrayList<>();
            for (int seed = 0; seed < 8; seed++) {
                int own = seed;
                texts.add(clients.submit(() -> overHttp(400, 0.8, own)));
            }
            for (int seed = 0; seed < 8; seed++) {
                assertThat(texts.get(seed).get(TIMEOUT_SECONDS, TimeUnit.SECONDS))
                        .isEqualTo(local(400, 0.8, seed));
            }
        }
        assertThat(rows(2) - before).as("characters of batches of 2 or more").isGreaterThan(8 * 400 / 2);
    }

    @Test
    void aClientThatLeavesEndsItsText() throws Exception {
        try (HttpConnection leaving = server.http()) {
            byte[] request = request(4096, 0, 1);
            leaving.send(request, 0, request.length);
            Eventually.holds("begins", TIMEOUT_SECONDS, () -> texts().live() == 1);
        }
        Eventually.holds("ends", TIMEOUT_SECONDS, () -> texts().live() == 0);
        assertThat(texts().ended()).containsEntry(SequenceEndReason.CANCELLED, 1L);
        assertThat(texts().stateBytes()).isZero();
    }

    @Test
    void wrongParametersAreExplained() throws IOException {
        try (HttpConnection http = server.http()) {
            assertThat(http.exchange(request(0, 0, 1)).text())
                    .contains("parameter 'max_tokens': 0 (expected: 1 to 4096)");
        }
    }

    private static SequenceStatistics texts() {
        return server.server().models().sequences().stream()
                .filter(one -> one.model().name().equals("char_lm"))
                .findFirst()
                .orElseThrow();
    }

    /** Returns the rows that were executed in batches of a size or more. */
    private static long rows(int least) {
        return GRPCInferenceServiceGrpc.newBlockingStub(server.channel())
                .modelStatistics(
                        ModelStatisticsRequest.newBuilder().setName("char_lm").build())
                .getModelStats(0)
                .getBatchStatsList()
                .stream()
                .filter(batch -> batch.getBatchSize() >= least)
                .mapToLong(
                        batch -> batch.getBatchSize() * batch.getComputeInfer().getCount())
                .sum();
    }

    private static byte[] request(int maxTokens, double temperature, long seed) {
        return HttpRequests.post(
                "/v2/models/char_lm/generate_stream",
                ("{\"text_input\":\"" + PROMPT + "\",\"max_tokens\":" + maxTokens + ",\"temperature\":" + temperature
                                + ",\"seed\":" + seed + "}")
                        .getBytes(UTF_8),
                "Content-Type: application/json");
    }

    private static String overHttp(int maxTokens, double temperature, long seed) throws IOException {
        StringBuilder text = new StringBuilder();
        try (HttpConnection http = server.http()) {
            RawHttpResponse response = http.exchange(request(maxTokens, temperature, seed));
            assertThat(response.status()).as(response::text).isEqualTo(200);
            for (String line : response.text().lines().toList()) {
                if (line.startsWith("data: ")) {
                    JsonObject event = JsonParser.parseString(line.substring(6)).getAsJsonObject();
                    text.append(event.get("text_output").getAsString());
                }
            }
        }
        return text.toString();
    }

    private static String overGrpc(int maxTokens, double temperature, long seed) throws Exception {
        StringBuilder text = new StringBuilder();
        CompletableFuture<String> all = new CompletableFuture<>();
        StreamObserver<ModelInferRequest> stream = GRPCInferenceServiceGrpc.newStub(server.channel())
                .modelStreamInfer(new StreamObserver<>() {
                    @Override
                    public void onNext(ModelStreamInferResponse one) {
                        if (!one.getErrorMessage().isEmpty()) {
                            all.completeExceptionally(new AssertionError(one.getErrorMessage()));
                        } else if (one.getInferResponse().getRawOutputContentsCount() > 0) {
                            text.append(one.getInferResponse()
                                    .getRawOutputContents(0)
                                    .substring(Integer.BYTES)
                                    .toStringUtf8());
                        }
                    }

                    @Override
                    public void onError(Throwable failure) {
                        all.completeExceptionally(failure);
                    }

                    @Override
                    public void onCompleted() {
                        all.complete(text.toString());
                    }
                });
        byte[] prompt = PROMPT.getBytes(UTF_8);
        ByteBuffer raw = ByteBuffer.allocate(Integer.BYTES + prompt.length).order(ByteOrder.LITTLE_ENDIAN);
        raw.putInt(prompt.length).put(prompt).flip();
        stream.onNext(ModelInferRequest.newBuilder()
                .setModelName("char_lm")
                .addInputs(InferInputTensor.newBuilder()
                        .setName("text_input")
                        .setDatatype("BYTES")
                        .addShape(1)
                        .addShape(1))
                .addRawInputContents(ByteString.copyFrom(raw))
                .putParameters(
                        "max_tokens",
                        InferParameter.newBuilder().setInt64Param(maxTokens).build())
                .putParameters(
                        "temperature",
                        InferParameter.newBuilder().setDoubleParam(temperature).build())
                .putParameters(
                        "seed", InferParameter.newBuilder().setInt64Param(seed).build())
                .build());
        stream.onCompleted();
        return all.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }

    /** Computes a text without the server. */
    private static String local(int maxTokens, double temperature, long seed) throws IOException {
        FloatBuffer weights = ByteBuffer.wrap(Files.readAllBytes(
                        TestPaths.checkout().resolve("examples/plugin-models/char_lm/1/weights.bin")))
                .order(ByteOrder.LITTLE_ENDIAN)
                .asFloatBuffer();
        float[] hidden = new float[HIDDEN];
        for (int i = 0; i < PROMPT.length(); i++) {
            hidden = read(weights, PROMPT.charAt(i) - 31, hidden);
        }
        StringBuilder text = new StringBuilder();
        for (int i = 0; i < maxTokens; i++) {
            double random = new SplittableRandom(seed * 31 + i).nextDouble();
            int symbol = choose(weights, hidden, temperature, random);
            text.append(symbol == 0 ? '\n' : (char) (symbol + 31));
            hidden = read(weights, symbol, hidden);
        }
        return text.toString();
    }

    private static float[] read(FloatBuffer weights, int symbol, float[] hidden) {
        int matrix = SYMBOLS * HIDDEN;
        int bias = matrix + HIDDEN * HIDDEN;
        float[] next = new float[HIDDEN];
        for (int i = 0; i < HIDDEN; i++) {
            float sum = weights.get(symbol * HIDDEN + i) + weights.get(bias + i);
            for (int j = 0; j < HIDDEN; j++) {
                sum += weights.get(matrix + i * HIDDEN + j) * hidden[j];
            }
            next[i] = (float) StrictMath.tanh(sum);
        }
        return next;
    }

    private static int choose(FloatBuffer weights, float[] hidden, double temperature, double random) {
        int matrix = SYMBOLS * HIDDEN + HIDDEN * HIDDEN + HIDDEN;
        double[] logits = new double[SYMBOLS];
        int best = 0;
        for (int s = 0; s < SYMBOLS; s++) {
            float sum = weights.get(matrix + SYMBOLS * HIDDEN + s);
            for (int i = 0; i < HIDDEN; i++) {
                sum += weights.get(matrix + s * HIDDEN + i) * hidden[i];
            }
            logits[s] = sum;
            best = logits[s] > logits[best] ? s : best;
        }
        if (temperature == 0) {
            return best;
        }
        double all = 0;
        for (double logit : logits) {
            all += StrictMath.exp((logit - logits[best]) / temperature);
        }
        double reached = 0;
        for (int s = 0; s < SYMBOLS; s++) {
            reached += StrictMath.exp((logits[s] - logits[best]) / temperature);
            if (reached >= random * all) {
                return s;
            }
        }
        return SYMBOLS - 1;
    }
}
