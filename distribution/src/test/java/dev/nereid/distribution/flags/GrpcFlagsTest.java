package dev.nereid.distribution.flags;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.api.frontend.ApiGroup;
import dev.nereid.api.frontend.ConnectionLimiter;
import dev.nereid.api.tls.TlsFiles;
import dev.nereid.distribution.process.StartException;
import dev.nereid.grpc.GrpcOptions;
import dev.nereid.grpc.ResponseCompression;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import org.junit.jupiter.api.Test;

final class GrpcFlagsTest {
    private static GrpcFlags read(String... arguments) throws UsageException {
        GrpcFlags grpc = new GrpcFlags();
        Flags flags = new Flags();
        grpc.declare(flags);
        flags.read(List.of(arguments), Map.of());
        return grpc;
    }

    private static GrpcOptions options(String... arguments) throws UsageException, StartException {
        GrpcFlags flags = read(arguments);
        flags.check();
        return flags.options(ConnectionLimiter.unlimited(), Duration.ofSeconds(30));
    }

    @Test
    void hasTheDefaultsOfThePort() throws UsageException, StartException {
        GrpcOptions options = options();

        assertThat(options.messages()).isEqualTo(GrpcOptions.of(_ -> {}).messages());
        assertThat(options.connections()).isEqualTo(GrpcOptions.of(_ -> {}).connections());
        assertThat(options.policy().forwardedHeaders()).isEmpty();
        assertThat(options.port()).isEqualTo(8001);
    }

    @Test
    void closesIdleConnectionsByDefault() throws UsageException, StartException {
        assertThat(options().limits().maxIdle()).contains(Duration.ofSeconds(620));
        assertThat(options("--grpc-max-connection-idle-ms=0").limits().maxIdle())
                .isEmpty();
        assertThat(options("--grpc-max-connection-idle-ms=5").limits().maxIdle())
                .contains(Duration.ofMillis(5));
    }

    @Test
    void setsWhatMayBeSent() throws UsageException, StartException {
        GrpcOptions.Messages messages = options(
                        "--grpc-max-input-size=9",
                        "--grpc-max-response-pool-size=7",
                        "--grpc-infer-response-compression-level=high")
                .messages();

        assertThat(messages.maxInboundBytes()).isEqualTo(9);

        assertThat(messages.maxWaitingResponses()).isEqualTo(7);
        assertThat(messages.compression()).isEqualTo(ResponseCompression.HIGH);
    }

    @Test
    void delaysResponsesByTheEnvironmentVariable() throws UsageException, StartException {
        for (var delay : Map.of("2", 2, "0", 0, "", 0).entrySet()) {
            GrpcFlags flags = read();
            flags.readEnvironment(Map.of("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC", delay.getKey()));
            assertThat(flags.options(ConnectionLimiter.unlimited(), Duration.ofSeconds(30))
                            .messages()
                            .controlDelay())
                    .isEqualTo(Duration.ofSeconds(delay.getValue()));
        }
        for (String bad : List.of("-1", "two", "1.5", "99999999999")) {
            assertThatThrownBy(() -> read().readEnvironment(Map.of("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC", bad)))
                    .isInstanceOf(StartException.class)
                    .hasMessage("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC: '" + bad
                            + "' (expected: a whole number, 0 or more, of seconds)");
        }
        read("--allow-grpc=false").readEnvironment(Map.of("TRITONSERVER_SERVER_DELAY_GRPC_RESPONSE_SEC", "two"));
    }

    @Test
    void setsHowConnectionsAreKept() throws UsageException, StartException {
        GrpcOptions.Connections connections = options(
                        "--grpc-keepalive-time=1",
                        "--grpc-keepalive-timeout=2",
                        "--grpc-keepalive-permit-without-calls=true",
                        "--grpc-http2-min-recv-ping-interval-without-data=3",
                        "--grpc-max-connection-age=4",
                        "--grpc-max-connection-age-grace=5")
                .connections();

        assertThat(connections)
                .isEqualTo(new GrpcOptions.Connections(
                        new GrpcOptions.KeepAlive(
                                Duration.ofMillis(1), Duration.ofMillis(2), true, Duration.ofMillis(3)),
                        Optional.of(Duration.ofMillis(4)),
                        Optional.of(Duration.ofMillis(5)),
                        Optional.empty()));
    }

    @Test
    void takesFlagsThatHaveNoEffect() throws UsageException, StartException {
        assertThat(options(
                                "--grpc-infer-thread-count=16",
                                "--grpc-infer-allocation-pool-size=8",
                                "--grpc-http2-max-pings-without-data=2",
                                "--grpc-http2-max-ping-strikes=2")
                        .messages())
                .isEqualTo(GrpcOptions.of(_ -> {}).messages());
    }

    @Test
    void setsRestrictions() throws UsageException, StartException {
        GrpcOptions.Policy policy = options(
                        "--grpc-restricted-protocol=health,metadata:k=v",
                        "--grpc-restricted-protocol=inference:i=w",
                        "--grpc-header-forward-pattern=^x-")
                .policy();

        assertThat(policy.access().missingHeader(ApiGroup.METADATA, _ -> null)).contains("k");
        assertThat(policy.access().missingHeader(ApiGroup.INFERENCE, _ -> "w")).isEmpty();
        assertThat(policy.access().missingHeader(ApiGroup.TRACE, _ -> null)).isEmpty();
        assertThat(policy.forwardedHeaders().orElseThrow().matcher("x-y").find())
                .isTrue();
    }

    @Test
    void refusesToRestrictTwice() throws UsageException {
        GrpcFlags flags = read("--grpc-restricted-protocol=health:k=v", "--grpc-restricted-protocol=health:i=w");

        assertThatThrownBy(() -> flags.check())
                .isInstanceOf(StartException.class)
                .hasMessage("--grpc-restricted-protocol: restricted protocol 'health' can not be specified in"
                        + " multiple config groups");
    }

    @Test
    void encrypts() throws UsageException, StartException {
        String[] files = {"--grpc-server-cert=c", "--grpc-server-key=k", "--grpc-root-cert=r"};

        assertThat(options(files).connections().tls()).isEmpty();
        TlsFiles plain = options("--grpc-use-ssl=true", files[0], files[1], files[2])
                .connections()
                .tls()
                .orElseThrow();
        assertThat(plain.certificate()).isEqualTo(Path.of("c"));
        assertThat(plain.key()).isEqualTo(Path.of("k"));
        assertThat(plain.clientRoots()).isEmpty();
        TlsFiles mutual = options("--grpc-use-ssl-mutual=true", files[0], files[1], files[2])
                .connections()
                .tls()
                .orElseThrow();
        assertThat(mutual.clientRoots()).contains(Path.of("r"));
        assertThat(options("--grpc-use-ssl-mutual=false", files[0], files[1])
                        .connections()
                        .tls())
                .isPresent();
    }
}
