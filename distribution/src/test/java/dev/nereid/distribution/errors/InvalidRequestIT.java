package dev.nereid.distribution.errors;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.catchThrowableOfType;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.ServerExtension;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import inference.GRPCInferenceServiceGrpc;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import io.grpc.ManagedChannel;
import io.grpc.Status;
import io.grpc.StatusRuntimeException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.extension.RegisterExtension;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

/**
 * Tests that every kind of invalid request is refused with the expected error. The requests are sent over both
 * protocols, and the server continues to serve.
 */
class InvalidRequestIT {
    private static final String INFER = "/v2/models/" + InvalidRequests.VECTOR + "/infer";

    /**
     * The rows of the table of checks before a request reaches its model, except those with a test of their own below.
     */
    private static final String[] FORMS = {
        "decoupled model",
        "unknown content encoding",
        "Inference-Header-Content-Length: abc",
        "Inference-Header-Content-Length: -1",
        "Inference-Header-Content-Length: 3",
        "Inference-Header-Content-Length: 3000000000",
        "inputs missing",
        "no data",
        "data twice",
        "name missing",
        "datatype missing",
        "shape missing",
        "shape: dimension that wraps",
        "shape: too many elements",
        "shape: too many bytes",
        "shape: larger than the limit",
        "output in shared memory and classified",
        "output in shared memory and binary",
        "duplicate input",
        "duplicate output",
        "parameter: reserved",
        "parameter: null",
        "parameter: array",
        "parameter: object",
    };

    /** The rows of the table of checks against the model, in its order, except those of {@link InvalidRequests}. */
    private static final String[] REQUESTS = {
        "unknown model",
        "unknown version",
        "no ready version",
        "version not ready",
        "input missing",
        "required input missing beside an optional one",
        "unknown input",
        "unknown output",
        "scalar for a model that batches",
        "batches that differ",
        "batch too large",
        "other datatype",
        "shape of a model that batches",
        "shape of a model that does not batch",
        "too few bytes",
        "too many bytes",
        "string's length cut",
        "too many strings",
        "too few strings",
    };

    @TempDir
    private static Path directory;

    @RegisterExtension
    private static final ServerExtension server = new ServerExtension(() ->
            TestServer.of(InvalidRequests.models(new Repository(directory))).with(o -> o.exitOnError = false));

    @AfterEach
    void nothingIsLost() throws IOException {
        assertThat(stub().modelInfer(InvalidRequests.good().overGrpc()).getRawOutputContents(0))
                .isEqualTo(InvalidRequests.good().overGrpc().getRawInputContents(0));
        try (HttpConnection connection = server.http()) {
            assertServes(connection);
        }
        Eventually.holds("no memory in use", 10, () -> server.server().memory().bytesInUse() == 0);
    }

    static List<InvalidRequest.Http> overHttp() {
        return InvalidRequests.all().stream()
                .map(InvalidRequest::http)
                .flatMap(Optional::stream)
                .toList();
    }

    static List<InvalidRequest.Grpc> overGrpc() {
        return InvalidRequests.all().stream()
                .map(InvalidRequest::grpc)
                .flatMap(Optional::stream)
                .toList();
    }

    @ParameterizedTest
    @MethodSource("overHttp")
    void isReportedOverHttp(InvalidRequest.Http row) throws IOException {
        try (HttpConnection connection = server.http()) {
            RawHttpResponse response = connection.exchange(row.request());

            assertThat(response.error())
                    .startsWith(row.error()); // the expected form, the place and the actual text follow
            assertThat(response.status()).isEqualTo(row.status());
            assertServes(connection);
        }
    }

    @ParameterizedTest
    @MethodSource("overGrpc")
    void isReportedOverGrpc(InvalidRequest.Grpc row) {
        StatusRuntimeException error =
                catchThrowableOfType(StatusRuntimeException.class, () -> stub().modelInfer(row.request()));

        assertThat(error).isNotNull();
        assertThat(error.getStatus().getDescription()).isEqualTo(row.error());
        assertThat(error.getStatus().getCode()).isEqualTo(row.status());
    }

    @Test
    void anUnknownContentEncodingIsRefusedWithTheSupportedOnes() throws IOException {
        try (HttpConnection connection = server.http()) {
            RawHttpResponse response =
                    connection.exchange(HttpRequests.json(InvalidRequests.VECTOR, "{}", "Content-Encoding: br"));

            assertThat(response.status()).isEqualTo(501);
            assertThat(response.headers()).containsKey("accept-encoding");
        }
    }

    @Test
    void aContentLengthThatIsNoNumberIsRefused() throws IOException {
        for (String length : List.of("abc", "-1", "18446744073709551616")) {
            try (HttpConnection connection = server.http()) {
                RawHttpResponse response =
                        connection.exchange(HttpRequests.postOf(INFER, new byte[0], "Content-Length: " + length));

                assertThat(response.status()).isEqualTo(400);
                assertThat(response.error()).isEqualTo("Unable to parse Content-Length, got: " + length);
                assertThat(connection.isClosed()).isTrue();
            }
        }
    }

    @Test
    void moreJsonThanTheLimitIsRefusedByItsAnnouncement() throws IOException {
        long size = TestServer.MAX_JSON_BYTES + 1;
        try (HttpConnection connection = server.http()) {
            RawHttpResponse response =
                    connection.exchange(HttpRequests.postOf(INFER, new byte[0], "Content-Length: " + size));

            assertThat(response.status()).isEqualTo(400);
            assertThat(response.error())
                    .isEqualTo("request JSON size of " + size + " bytes exceeds the maximum allowed input size of "
                            + TestServer.MAX_JSON_BYTES
                            + " bytes. Use --http-max-input-size to increase the limit.");
        }
    }

    @Test
    void moreBytesThanTheLimitAreRefusedByTheirAnnouncement() throws IOException {
        try (HttpConnection connection = server.http()) {
            RawHttpResponse response = connection.exchange(HttpRequests.postOf(
                    INFER, new byte[0], "Content-Length: 10737418240", "Inference-Header-Content-Length: 100"));

            assertThat(response.status()).isEqualTo(400);
            assertThat(response.error())
                    .startsWith("request has a size (10737418240 bytes) that exceeds the maximum allowed value of ");
        }
    }

    @Test
    void everyRowOfBothTablesIsThere() {
        assertThat(overHttp())
                .extracting(InvalidRequest.Http::title)
                .contains(FORMS)
                .contains(REQUESTS);
        assertThat(overGrpc()).extracting(InvalidRequest.Grpc::title).contains(REQUESTS);
    }

    @Test
    void aServerThatIsClosedIsNotReady(@TempDir Path models) throws IOException, InterruptedException {
        TestServer closed = TestServer.open(NereidServer.start(
                TestServer.of(InvalidRequests.models(new Repository(models))).with(o -> o.exitOnError = false)));
        ManagedChannel toClosed = closed.grpc();
        try (closed;
                HttpConnection connection = closed.http()) {
            closed.server().close();

            RawHttpResponse response =
                    connection.exchange(InvalidRequests.good().overHttp());
            StatusRuntimeException error = catchThrowableOfType(
                    StatusRuntimeException.class,
                    () -> GRPCInferenceServiceGrpc.newBlockingStub(toClosed)
                            .withDeadlineAfter(60, TimeUnit.SECONDS)
                            .modelInfer(InvalidRequests.good().overGrpc()));

            assertThat(response.status()).isEqualTo(503);
            assertThat(response.error()).isEqualTo("Server not ready");
            assertThat(error.getStatus().getCode()).isEqualTo(Status.Code.UNAVAILABLE);
            assertThat(error.getStatus().getDescription()).isEqualTo("Server not ready");
        } finally {
            toClosed.shutdownNow().awaitTermination(10, TimeUnit.SECONDS);
        }
    }

    private static void assertServes(HttpConnection connection) throws IOException {
        RawHttpResponse response = connection.exchange(HttpRequests.json(
                InvalidRequests.VECTOR,
                "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,2],\"datatype\":\"FP32\",\"data\":[1.5,2]}]}"));
        assertThat(response.status()).isEqualTo(200);
        assertThat(new String(response.body(), StandardCharsets.UTF_8)).contains("\"data\":[1.5,2");
    }

    private static GRPCInferenceServiceBlockingStub stub() {
        return GRPCInferenceServiceGrpc.newBlockingStub(server.channel()).withDeadlineAfter(60, TimeUnit.SECONDS);
    }
}
