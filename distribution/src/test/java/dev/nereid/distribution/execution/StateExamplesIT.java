package dev.nereid.distribution.execution;

import static java.nio.charset.StandardCharsets.UTF_8;
import static org.assertj.core.api.Assertions.assertThat;

import com.google.protobuf.ByteString;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TestPaths;
import dev.nereid.server.options.ServerOptions;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelStreamInferResponse;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;

/** The example backends {@code implicit_state} and {@code iterative_sequence} over both protocols. */
class StateExamplesIT {
    private static final int TIMEOUT_SECONDS = 30;

    @RegisterExtension
    private static final ServerExtension server =
            new ServerExtension(() -> ServerOptions.of(TestPaths.checkout().resolve("examples/plugin-models"))
                    .withPlugins(TestPaths.plugins()));

    @Test
    void countsDownInEventsOfHttp() throws IOException {
        RawHttpResponse response = post("/v2/models/iterative_sequence/generate_stream", "{\"INPUT\":2}");

        assertThat(response.status()).as(response::text).isEqualTo(200);
        assertThat(response.text().lines().filter(line -> line.startsWith("data: ")))
                .satisfiesExactly(
                        first -> assertThat(first).contains("\"OUTPUT\":1"),
                        second -> assertThat(second).contains("\"OUTPUT\":0"));
    }

    @Test
    void countsDownOnAStreamOfGrpc() throws Exception {
        assertThat(stream(2)).containsExactly(1, 0);
        assertThat(stream(2, 2, 2, 2)).containsExactlyInAnyOrder(1, 0, 1, 0, 1, 0, 1, 0);
    }

    @Test
    void usesStatesAsTheTestCaseSays() throws IOException {
        assertThat(infer(0, "\"sequence_start\":true").error())
                .isEqualTo("state 'undefined_state' is not a valid state name. (expected: one of [OUTPUT_STATE])");
        assertThat(infer(2, "\"sequence_start\":true").status()).isEqualTo(200);
        assertThat(infer(2, "\"sequence_end\":false").status()).isEqualTo(200);
        assertThat(infer(1, "\"sequence_end\":true").text()).contains("\"data\":[5]");
    }

    private static RawHttpResponse infer(int testCase, String position) throws IOException {
        return post(
                "/v2/models/implicit_state/infer",
                "{\"parameters\":{\"sequence_id\":2," + position + "},\"inputs\":[" + tensor("INPUT", 5) + ","
                        + tensor("TEST_CASE", testCase) + "]}");
    }

    private static String tensor(String name, int value) {
        return "{\"name\":\"" + name + "\",\"datatype\":\"INT32\",\"shape\":[1],\"data\":[" + value + "]}";
    }

    private static RawHttpResponse post(String path, String body) throws IOException {
        try (HttpConnection http = server.http()) {
            return http.exchange(HttpRequests.post(path, body.getBytes(UTF_8), "Content-Type: application/json"));
        }
    }

    /** Sends requests on one stream, and returns their outputs as they come. */
    private static List<Integer> stream(int... numbers) throws Exception {
        ConcurrentLinkedQueue<Integer> outputs = new ConcurrentLinkedQueue<>();
        CompletableFuture<List<Integer>> all = new CompletableFuture<>();
        StreamObserver<ModelInferRequest> stream = GRPCInferenceServiceGrpc.newStub(server.channel())
                .modelStreamInfer(new StreamObserver<>() {
                    @Override
                    public void onNext(ModelStreamInferResponse one) {
                        if (!one.getErrorMessage().isEmpty()) {
                            all.completeExceptionally(new AssertionError(one.getErrorMessage()));
                        } else {
                            outputs.add(one.getInferResponse()
                                    .getRawOutputContents(0)
                                    .asReadOnlyByteBuffer()
                                    .order(ByteOrder.LITTLE_ENDIAN)
                                    .getInt());
                        }
                    }

                    @Override
                    public void onError(Throwable failure) {
                        all.completeExceptionally(failure);
                    }

                    @Override
                    public void onCompleted() {
                        all.complete(List.copyOf(outputs));
                    }
                });
        for (int number : numbers) {
            ByteBuffer data = ByteBuffer.allocate(Integer.BYTES)
                    .order(ByteOrder.LITTLE_ENDIAN)
                    .putInt(number);
            stream.onNext(ModelInferRequest.newBuilder()
                    .setModelName("iterative_sequence")
                    .addInputs(ModelInferRequest.InferInputTensor.newBuilder()
                            .setName("INPUT")
                            .setDatatype("INT32")
                            .addShape(1)
                            .addShape(1))
                    .addRawInputContents(ByteString.copyFrom(data.flip()))
                    .build());
        }
        stream.onCompleted();
        return all.get(TIMEOUT_SECONDS, TimeUnit.SECONDS);
    }
}
