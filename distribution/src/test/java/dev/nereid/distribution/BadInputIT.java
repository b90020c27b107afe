package dev.nereid.distribution;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import io.grpc.ManagedChannel;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/** Says of every kind of wrong request what is to be said of it, over both protocols, and goes on as if nothing was. */
class BadInputIT {
    private static final String INFER = "/v2/models/" + BadInputs.VECTOR + "/infer";

    @TempDir
    private static Path folder;

    private static TestServer server;
    private static ManagedChannel channel;

    @BeforeAll
    static void start() throws IOException, InterruptedException {
        Repository models = BadInputs.models(new Repository(folder));
        server = TestServer.open(TestServer.of(models).exitOnError(false).start());
        channel = server.grpc();
    }

    @AfterAll
    static void stop() throws InterruptedException {
        channel.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        server.close();
    }

    @AfterEach
    void nothingIsLost() throws IOException {
        assertThat(stub().modelInfer(BadInputs.good().overGrpc()).getRawOutputContents(0))
                .isEqualTo(BadInputs.good().overGrpc().getRawInputContents(0));
        try (HttpConnection connection = server.http()) {
            assertServes(connection);
        }
        Eventually.holds("no memory in use", 10, () -> server.server().memory().bytesInUse() == 0);
    }

    static List<BadInput.Http> overHttp() {
        return BadInputs.all().stream()
                .map(BadInput::http)
                .flatMap(Optional::stream)
                .toList();
    }

    static List<BadInput.Grpc> overGrpc() {
        return BadInputs.all().stream()
                .map(BadInput::grpc)
                .flatMap(Optional::stream)
                .toList();
    }

    @ParameterizedTest
    @MethodSource("overHttp")
    void isToldOverHttp(BadInput.Http row) throws IOException {
        try (HttpConnection connection = server.http()) {
            HttpAnswer answer = connection.ask(row.request());

            assertThat(answer.error()).isEqualTo(row.error());
            assertThat(answer.status()).isEqualTo(row.status());
            assertServes(connection);
        }
    }

    @ParameterizedTest
    @MethodSource("overGrpc")
    void isToldOverGrpc(BadInput.Grpc row) {
        StatusRuntimeException error =
                catchThrowableOfType(StatusRuntimeException.class, () -> stub().modelInfer(row.request()));

        assertThat(error).isNotNull();
        assertThat(error.getStatus().getDescription()).isEqualTo(row.error());
        assertThat(error.getStatus().getCode()).isEqualTo(row.status());
    }

    @Test
    void aContentEncodingThatIsUnknownIsAnsweredWithThoseThatAreKnown() throws IOException {
        try (HttpConnection connection = server.http()) {
            HttpAnswer answer = connection.ask(HttpRequests.json(BadInputs.VECTOR, "{}", "Content-Encoding: br"));

            assertThat(answer.status()).isEqualTo(501);
            assertThat(answer.headers()).containsKey("accept-encoding");
        }
    }

    @Test
    void aContentLengthThatIsNoNumberIsRefused() throws IOException {
        for (String length : List.of("abc", "-1", "18446744073709551616")) {
            try (HttpConnection connection = server.http()) {
                HttpAnswer answer =
                        connection.ask(HttpRequests.postOf(INFER, new byte[0], "Content-Length: " + length));

                assertThat(answer.status()).isEqualTo(400);
                assertThat(answer.error()).isEqualTo("Unable to parse Content-Length, got: " + length);
                assertThat(connection.isClosed()).isTrue();
            }
        }
    }

    @Test
    void moreJsonThanTheLimitIsRefusedByItsAnnouncement() throws IOException {
        long size = TestServer.MAX_JSON_BYTES + 1;
        try (HttpConnection connection = server.http()) {
            HttpAnswer answer = connection.ask(HttpRequests.postOf(INFER, new byte[0], "Content-Length: " + size));

            assertThat(answer.status()).isEqualTo(400);
            assertThat(answer.error())
                    .isEqualTo("request JSON size of " + size + " bytes exceeds the maximum allowed input size of "
                            + TestServer.MAX_JSON_BYTES
                            + " bytes. Use --http-max-input-size to increase the limit.");
        }
    }

    @Test
    void moreBytesThanTheLimitAreRefusedByTheirAnnouncement() throws IOException {
        try (HttpConnection connection = server.http()) {
            HttpAnswer answer = connection.ask(HttpRequests.postOf(
                    INFER, new byte[0], "Content-Length: 10737418240", "Inference-Header-Content-Length: 100"));

            assertThat(answer.status()).isEqualTo(400);
            assertThat(answer.error())
                    .startsWith("request has a size (10737418240 bytes) that exceeds the maximum allowed value of ");
        }
    }

    @Test
    void everyRowOfBothTablesIsThere() {
        assertThat(overHttp()).hasSizeGreaterThanOrEqualTo(48);
        assertThat(overGrpc()).hasSizeGreaterThanOrEqualTo(30);
    }

    private static void assertServes(HttpConnection connection) throws IOException {
        HttpAnswer answer = connection.ask(HttpRequests.json(
                BadInputs.VECTOR,
                "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1.5,2]}]}"));
        assertThat(answer.status()).isEqualTo(200);
        assertThat(new String(answer.body(), StandardCharsets.UTF_8)).contains("\"data\":[1.5,2");
    }

    private static GRPCInferenceServiceBlockingStub stub() {
        return GRPCInferenceServiceGrpc.newBlockingStub(channel).withDeadlineAfter(60, TimeUnit.SECONDS);
    }
}
