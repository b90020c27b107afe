package dev.nereid.benchmarks.process;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.assertThatThrownBy;

import dev.nereid.benchmarks.load.ClientEventLoops;
import dev.nereid.benchmarks.load.Exchange;
import dev.nereid.benchmarks.load.GrpcLoad;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.Loopback;
import dev.nereid.benchmarks.report.Sample;
import inference.GRPCInferenceServiceGrpc.GRPCInferenceServiceImplBase;
import inference.ModelInferRequest;
import inference.ModelInferResponse;
import io.grpc.Server;
import io.grpc.netty.NettyServerBuilder;
import io.grpc.stub.StreamObserver;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse.BodyHandlers;
import java.time.Duration;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.SocketFactory;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

final class EchoIT {
    private static final Duration SHORT = Duration.ofSeconds(1);

    @ParameterizedTest
    @CsvSource({"/whole, 256", "/whole, 150528", "/chunks, 256", "/chunks, 150528"})
    void echoesTheBodyOverHttp(String path, long elements) throws IOException, InterruptedException {
        byte[] body = InferBody.of("INPUT0", 1L, elements).http();

        try (ClientEventLoops loops = ClientEventLoops.start(2);
                HttpClient client = HttpClient.newBuilder()
                        .version(HttpClient.Version.HTTP_1_1)
                        .build()) {
            URI echo = URI.create("http://127.0.0.1:" + HttpEcho.start(loops.vertx(), 2) + path);
            HttpRequest request = HttpRequest.newBuilder(echo)
                    .POST(BodyPublishers.ofByteArray(body))
                    .build();
            assertThat(client.send(request, BodyHandlers.ofByteArray()).body()).isEqualTo(body);
        }
    }

    @Test
    void reportsTheStatusAndWhetherThePortIsOpen() throws IOException {
        try (ClientEventLoops loops = ClientEventLoops.start(1)) {
            int port = HttpEcho.start(loops.vertx(), 1);

            assertThat(Exchange.status(SocketFactory.getDefault(), port, Exchange.post(HttpEcho.WHOLE, "{}")))
                    .hasValue(200);
        }
        assertThat(Exchange.status(SocketFactory.getDefault(), Loopback.freePort(), Exchange.get("/")))
                .isEmpty();
    }

    @ParameterizedTest
    @ValueSource(ints = {1, 8})
    void countsTheCallsOverGrpc(int inFlight) throws IOException, InterruptedException {
        try (ClientEventLoops loops = ClientEventLoops.start(2);
                StoppingServer echo = new StoppingServer(GrpcEcho.start(loops));
                GrpcLoad load = GrpcLoad.connect("echo", loops, echo.port(), request(), inFlight)) {
            Sample first = load.load(SHORT);
            Sample second = load.load(SHORT);

            assertThat(first.perSecond()).isPositive();
            assertThat(second.perSecond()).isPositive();
            assertThat(second.p99Micros()).isGreaterThanOrEqualTo(second.p50Micros());
        }
    }

    @Test
    void countsEachCallOverGrpcOnce() throws IOException, InterruptedException {
        Counting service = new Counting();
        try (ClientEventLoops loops = ClientEventLoops.start(1);
                StoppingServer server = StoppingServer.of(loops, service);
                GrpcLoad load = GrpcLoad.connect("echo", loops, server.port(), request(), 4)) {
            Sample sample = load.load(SHORT);

            // One call to check the request and one to check the connection; the last one of each lane may end after
            // the time and is not counted.
            double counted = sample.perSecond() * SHORT.toMillis() / 1_000;
            assertThat(counted).isBetween(service.calls.get() - 6.5, service.calls.get() - 1.5);
        }
    }

    @Test
    void refusesAServerThatEchoesOtherContents() throws IOException {
        try (ClientEventLoops loops = ClientEventLoops.start(1);
                StoppingServer server = StoppingServer.of(loops, new Empty())) {
            assertThatThrownBy(() -> GrpcLoad.connect("empty", loops, server.port(), request(), 1))
                    .isInstanceOf(IOException.class)
                    .hasMessage("ModelInfer: other contents (expected: those of the request)");
        }
    }

    @Test
    void reportsNoFiguresWhenACallFails() throws IOException {
        try (ClientEventLoops loops = ClientEventLoops.start(1);
                StoppingServer server = new StoppingServer(GrpcEcho.start(loops));
                GrpcLoad load = GrpcLoad.connect("echo", loops, server.port(), request(), 8)) {
            server.server().shutdownNow();

            assertThatThrownBy(() -> load.load(SHORT))
                    .isInstanceOf(IOException.class)
                    .hasMessageContaining("UNAVAILABLE");
        }
    }

    private static ModelInferRequest request() {
        return InferBody.of("INPUT0", 1L, 256L).grpc("identity");
    }

    /** Never responds. */
    private static final class Empty extends GRPCInferenceServiceImplBase {
        @Override
        public void modelInfer(ModelInferRequest request, StreamObserver<ModelInferResponse> observer) {
            observer.onNext(ModelInferResponse.getDefaultInstance());
            observer.onCompleted();
        }
    }

    /** Counts the echoed bodies. */
    private static final class Counting extends GRPCInferenceServiceImplBase {
        private final AtomicInteger calls = new AtomicInteger();
        private final GrpcEcho echo = new GrpcEcho();

        @Override
        public void modelInfer(ModelInferRequest request, StreamObserver<ModelInferResponse> observer) {
            calls.incrementAndGet();
            echo.modelInfer(request, observer);
        }
    }

    private record StoppingServer(Server server) implements AutoCloseable {
        static StoppingServer of(ClientEventLoops loops, GRPCInferenceServiceImplBase service) throws IOException {
            return new StoppingServer(NettyServerBuilder.forAddress(Loopback.at(0))
                    .bossEventLoopGroup(loops.acceptors())
                    .workerEventLoopGroup(loops.workers())
                    .channelFactory(loops.serverChannels())
                    .directExecutor()
                    .addService(service)
                    .build()
                    .start());
        }

        int port() {
            return server.getPort();
        }

        @Override
        public void close() {
            server.shutdownNow();
        }
    }
}
