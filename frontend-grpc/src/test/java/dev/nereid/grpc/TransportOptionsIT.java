package dev.nereid.grpc;

import static dev.nereid.grpc.testing.TestFrontend.floats;
import static dev.nereid.grpc.testing.TestFrontend.request;
import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.grpc.testing.TestFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import inference.GRPCInferenceServiceGrpc;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import inference.ServerLiveRequest;
import io.grpc.CallOptions;
import io.grpc.Channel;
import io.grpc.ClientCall;
import io.grpc.ClientInterceptor;
import io.grpc.ForwardingClientCall.SimpleForwardingClientCall;
import io.grpc.ForwardingClientCallListener.SimpleForwardingClientCallListener;
import io.grpc.Metadata;
import io.grpc.MethodDescriptor;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.time.Duration;
import java.util.HashMap;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

final class TransportOptionsIT {
    private static final ModelInferRequest REQUEST =
            request("m", "FP32", floats(new float[10_000]), 10_000).build();

    /** Records the compression of responses. */
    private static final class Encoding implements ClientInterceptor {
        private static final Metadata.Key<String> KEY =
                Metadata.Key.of("grpc-encoding", Metadata.ASCII_STRING_MARSHALLER);

        private final AtomicReference<String> seen = new AtomicReference<>("none");

        @Override
        public <Q, R> ClientCall<Q, R> interceptCall(MethodDescriptor<Q, R> method, CallOptions options, Channel next) {
            return new SimpleForwardingClientCall<>(next.newCall(method, options)) {
                @Override
                public void start(Listener<R> listener, Metadata headers) {
                    super.start(
                            new SimpleForwardingClientCallListener<>(listener) {
                                @Override
                                public void onHeaders(Metadata received) {
                                    seen.set(String.valueOf(received.get(KEY)));
                                    super.onHeaders(received);
                                }
                            },
                            headers);
                }
            };
        }
    }

    @ParameterizedTest
    @EnumSource(ResponseCompression.class)
    void compressesInferResponses(ResponseCompression compression) throws Exception {
        try (TestFrontend frontend = new TestFrontend(grpc -> grpc.compression = compression)) {
            frontend.server.add(FakeModel.identity("m", DataType.FP32, 0, -1));
            Encoding encoding = new Encoding();

            ModelInferResponse response =
                    frontend.client.withInterceptors(encoding).modelInfer(REQUEST);

            assertThat(response.getRawOutputContents(0)).isEqualTo(REQUEST.getRawInputContents(0));
            assertThat(encoding.seen.get()).isEqualTo(compression == ResponseCompression.NONE ? "identity" : "gzip");
            StreamClient stream = StreamClient.open(frontend);
            stream.send(REQUEST).halfClose().end();
            assertThat(stream.next().getInferResponse().getRawOutputContents(0))
                    .isEqualTo(REQUEST.getRawInputContents(0));
        }
    }

    /** The first frame of the server holds its settings; each has a number of two bytes and a value of four. */
    @Test
    void announcesTheMaximumOfConcurrentCalls() throws IOException {
        try (TestFrontend frontend = new TestFrontend();
                Socket socket = new Socket(InetAddress.getLoopbackAddress(), frontend.frontend.port())) {
            socket.setSoTimeout(20_000);
            socket.getOutputStream().write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".getBytes(US_ASCII));
            socket.getOutputStream().write(new byte[] {0, 0, 0, 4, 0, 0, 0, 0, 0});
            DataInputStream in = new DataInputStream(socket.getInputStream());
            int length = in.readInt() >>> 8;
            in.skipNBytes(5);

            Map<Integer, Integer> settings = new HashMap<>();
            for (int i = 0; i < length / 6; i++) {
                settings.put(in.readUnsignedShort(), in.readInt());
            }

            assertThat(settings).containsEntry(3, 1024);
        }
    }

    @Test
    void endsConnectionsThatAreTooOld() throws Exception {
        try (TestFrontend frontend = new TestFrontend(grpc -> {
            grpc.maxAge = Optional.of(Duration.ofMillis(100));
            grpc.maxAgeGrace = Optional.of(Duration.ofMillis(100));
        })) {
            StreamClient stream = StreamClient.open(frontend);

            assertThat(stream.end().isOk()).isFalse();
        }
    }

    @Test
    void infersOverSuccessiveConnections() {
        try (TestFrontend frontend = new TestFrontend(grpc -> {
            grpc.maxAge = Optional.of(Duration.ofMillis(50));
            grpc.maxAgeGrace = Optional.of(Duration.ofSeconds(10));
        })) {
            for (int i = 0; i < 200; i++) {
                assertThat(GRPCInferenceServiceGrpc.newBlockingStub(frontend.channel)
                                .withWaitForReady()
                                .serverLive(ServerLiveRequest.getDefaultInstance())
                                .getLive())
                        .isTrue();
            }
        }
    }
}
