package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.assertFails;
import static dev.nereid.grpc.testing.TestFrontend.floats;
import static dev.nereid.grpc.testing.TestFrontend.request;
import static io.grpc.Status.Code.INVALID_ARGUMENT;
import static io.grpc.Status.Code.UNAVAILABLE;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.frontend.ApiAccess;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceBlockingStub;
import inference.ModelInferRequest;
import inference.RepositoryIndexRequest;
import inference.ServerLiveRequest;
import io.grpc.Metadata;
import io.grpc.Status;
import io.grpc.health.v1.HealthCheckRequest;
import io.grpc.health.v1.HealthGrpc;
import io.grpc.stub.MetadataUtils;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AutoClose;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;

/** Tests restricted methods and forwarded headers. */
final class PolicyIT {
    private static final String REFUSAL =
            "This protocol is restricted, expecting header 'triton-grpc-protocol-admin-key'";
    private static final ModelInferRequest REQUEST =
            request("m", "FP32", floats(1), 1).build();

    @AutoClose
    private final TestFrontend frontend = new TestFrontend(grpc -> {
        grpc.access = ApiAccess.parse(List.of("health,model-repository:admin-key=secret"));
        grpc.forwardedHeaders = Optional.of(Pattern.compile("my-|triton_|grpc|content"));
    });

    @BeforeEach
    void addModel() {
        frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
    }

    private static Metadata header(String name, String value) {
        Metadata headers = new Metadata();
        headers.put(Metadata.Key.of(name, Metadata.ASCII_STRING_MARSHALLER), value);
        return headers;
    }

    private GRPCInferenceServiceBlockingStub with(String name, String value) {
        return frontend.client.withInterceptors(MetadataUtils.newAttachHeadersInterceptor(header(name, value)));
    }

    @Test
    void requiresTheSecret() {
        ServerLiveRequest live = ServerLiveRequest.getDefaultInstance();

        assertFails(() -> frontend.client.serverLive(live), UNAVAILABLE, REFUSAL);
        assertFails(() -> with("admin-key", "secret").serverLive(live), UNAVAILABLE, REFUSAL);
        assertFails(() -> with("triton-grpc-protocol-admin-key", "wrong").serverLive(live), UNAVAILABLE, REFUSAL);
        assertFails(
                () -> frontend.client.repositoryIndex(RepositoryIndexRequest.getDefaultInstance()),
                UNAVAILABLE,
                REFUSAL);
        assertFails(
                () -> HealthGrpc.newBlockingStub(frontend.channel).check(HealthCheckRequest.getDefaultInstance()),
                UNAVAILABLE,
                REFUSAL);

        assertThat(with("triton-grpc-protocol-admin-key", "secret")
                        .serverLive(live)
                        .getLive())
                .isTrue();
        assertThat(frontend.client.modelInfer(REQUEST).getModelName()).isEqualTo("m");
    }

    @Test
    void restrictsStreamsLikeCalls() throws Exception {
        try (TestFrontend restricted =
                new TestFrontend(grpc -> grpc.access = ApiAccess.parse(List.of("inference:k=v")))) {
            Status end = StreamClient.open(restricted).halfClose().end();

            assertThat(end.getCode()).isEqualTo(UNAVAILABLE);
            assertThat(end.getDescription())
                    .isEqualTo("This protocol is restricted, expecting header 'triton-grpc-protocol-k'");
            assertFails(
                    () -> restricted.client.modelInfer(REQUEST),
                    UNAVAILABLE,
                    "This protocol is restricted, expecting header 'triton-grpc-protocol-k'");
        }
    }

    @Test
    void passesHeadersOn() throws Exception {
        with("my-header", "hello").modelInfer(REQUEST);
        assertThat(frontend.server.requests().getLast().request().parameters())
                .isEqualTo(Map.of("my-header", new ParameterValue.Text("hello")));

        with("my-header", "hello  ").modelInfer(REQUEST);
        assertThat(frontend.server.requests().getLast().request().parameters())
                .isEqualTo(Map.of("my-header", new ParameterValue.Text("hello  ")));

        with("your-header", "hello").modelInfer(REQUEST);
        assertThat(frontend.server.requests().getLast().request().parameters()).isEmpty();

        StreamClient stream = StreamClient.open(frontend, header("not-my-header", "hi"), true);
        stream.send(REQUEST).halfClose().end();
        assertThat(frontend.server.requests().getLast().request().parameters())
                .isEqualTo(Map.of("not-my-header", new ParameterValue.Text("hi")));
    }

    @Test
    void refusesReservedHeaders() throws Exception {
        String text = "Header 'triton_grpc_error' is reserved for Triton usage and cannot be forwarded.";

        assertFails(() -> with("triton_grpc_error", "x").modelInfer(REQUEST), INVALID_ARGUMENT, text);
        StreamClient stream = StreamClient.open(frontend, header("triton_grpc_error", "x"), true);
        stream.send(REQUEST).halfClose().end();
        assertThat(stream.next().getErrorMessage()).isEqualTo(text);
    }
}
