package dev.nereid.http.infer;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.api.NamedTensor;
import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.body.ContentCoding;
import dev.nereid.http.body.QueuedBytes;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.http.json.JsonChunks;
import dev.nereid.http.json.JsonMemoryLimiter;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.testkit.FakeInferenceServer;
import dev.nereid.testkit.FakeResponse;
import dev.nereid.testkit.LeakCheckingMemory;
import io.vertx.core.Vertx;
import io.vertx.core.http.HttpServer;
import java.io.IOException;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.time.Duration;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import org.junit.jupiter.api.Test;

/** Responses too large for one write. */
class InferResponseWriterIT {
    private final FakeInferenceServer server = new FakeInferenceServer(new LeakCheckingMemory());

    @Test
    void sendsLargeBodiesInParts() throws IOException, InterruptedException {
        byte[] first = new byte[100_000];
        byte[] second = new byte[33_333];
        new Random(1).nextBytes(first);
        new Random(2).nextBytes(second);
        Vertx vertx = Vertx.vertx();
        ResponseFormat form = new ResponseFormat(
                RequestedOutputs.all(true),
                ContentCoding.IDENTITY,
                new RequestMemory(server.memory(), server.sharedMemory()),
                null);
        try (Arena arena = Arena.ofShared()) {
            FakeResponse response = FakeResponse.of(true, output(arena, "A", first), output(arena, "B", second));
            HttpServer http = vertx.createHttpServer()
                    .requestHandler(request -> new InferResponseWriter(vertx.getOrCreateContext(), 10_000)
                            .write(request.response(), response, form))
                    .listen(0, "127.0.0.1")
                    .await();

            try (RawHttpConnection connection = new RawHttpConnection(http.actualPort())) {
                RawHttpConnection.Response received =
                        connection.request("GET", "/").receive();

                int json = Integer.parseInt(received.header("inference-header-content-length"));
                assertThat(Arrays.copyOfRange(received.body(), json, received.body().length))
                        .isEqualTo(RawHttpConnection.join(first, second));
                assertThat(connection.request("GET", "/").receive().status()).isEqualTo(200);
            }
            assertThat(response.awaitCloses(2, Duration.ofSeconds(20))).isTrue();
            vertx.close().await();
        }
    }

    @Test
    void countsALongTextUntilItWasSent() throws IOException {
        int pieces = 64; // more than sockets hold
        Vertx vertx = Vertx.vertx();
        ResponseFormat form = new ResponseFormat(
                RequestedOutputs.all(false),
                ContentCoding.IDENTITY,
                new RequestMemory(server.memory(), server.sharedMemory()),
                null);
        List<Long> counts = new CopyOnWriteArrayList<>();
        HttpServer http = vertx.createHttpServer()
                .requestHandler(request -> {
                    JsonChunks text = new JsonChunks(() -> false, new JsonMemoryLimiter());
                    for (int i = 0; i < pieces; i++) {
                        text.add(new byte[1 << 20], 1 << 20);
                    }
                    counts.add(QueuedBytes.of(request.connection()).count());
                    FakeResponse response = FakeResponse.of(true);
                    new InferResponseWriter(vertx.getOrCreateContext())
                            .send(request, response, form, InferResponseWriter.collect(response, form, text, 0));
                    counts.add(QueuedBytes.of(request.connection()).count());
                })
                .listen(0, "127.0.0.1")
                .await();
        long size = (long) pieces << 20;

        try (RawHttpConnection connection = new RawHttpConnection(http.actualPort())) {
            assertThat(connection.request("GET", "/").receive().body()).hasSize((int) size);
            assertThat(connection.request("GET", "/").receive().body()).hasSize((int) size);
        }

        assertThat(counts).hasSize(4);
        assertThat(List.of(counts.get(0), counts.get(2))).containsOnly(0L);
        assertThat(List.of(counts.get(1), counts.get(3)))
                .allSatisfy(count -> assertThat(count).isBetween(1L, size));
        vertx.close().await();
    }

    private static NamedTensor output(Arena arena, String name, byte[] data) {
        MemorySegment memory = arena.allocate(data.length);
        MemorySegment.copy(data, 0, memory, ValueLayout.JAVA_BYTE, 0, data.length);
        return new NamedTensor(name, Tensor.of(DataType.UINT8, Shape.of(data.length), memory));
    }
}
