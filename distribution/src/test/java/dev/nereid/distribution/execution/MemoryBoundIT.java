package dev.nereid.distribution.execution;

import static java.nio.charset.StandardCharsets.US_ASCII;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.Eventually;
import dev.nereid.distribution.testing.HttpConnection;
import dev.nereid.distribution.testing.HttpRequests;
import dev.nereid.distribution.testing.RawHttpResponse;
import dev.nereid.distribution.testing.Repository;
import dev.nereid.distribution.testing.TestServer;
import dev.nereid.server.NereidServer;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.Tag;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Memory use grows with requests, up to a limit, and shrinks again. */
@Timeout(120)
@Tag("slow")
final class MemoryBoundIT {
    private static final long LIMIT = 64L << 20;
    private static final int TIMEOUT_SECONDS = 60;

    @TempDir
    private Path directory;

    @Test
    void takesLittleForBodiesThatAreOnlyAnnounced() throws Exception {
        NereidServer nereid =
                NereidServer.start(TestServer.of(models()).with(o -> o.tensorMemoryBytes = OptionalLong.of(LIMIT)));
        try (TestServer server = TestServer.open(nereid)) {
            List<HttpConnection> clients = new ArrayList<>();
            for (int i = 0; i < 160; i++) {
                HttpConnection client = server.http();
                clients.add(client);
                byte[] begun = begin("Content-Length: 50000000\r\n", new byte[1000]);
                client.send(begun, 0, begun.length);
            }
            Eventually.holds("arrived", TIMEOUT_SECONDS, () -> nereid.memory().bytesInUse() >= 160 * 1000);

            assertThat(nereid.memory().bytesInUse()).isLessThanOrEqualTo(160 * (128L << 10));
            assertThat(infer(server).status()).isEqualTo(200);

            for (HttpConnection client : clients) {
                client.close();
            }
            awaitNoMemory(nereid);
        }
    }

    @Test
    void refusesBodiesThatInflateBeyondTheBoundAndServesOthersAfterwards() throws Exception {
        NereidServer nereid =
                NereidServer.start(TestServer.of(models()).with(o -> o.tensorMemoryBytes = OptionalLong.of(LIMIT)));
        byte[] bomb = bomb(1 << 30);
        byte[] request = begin("Content-Encoding: gzip\r\nContent-Length: " + bomb.length + "\r\n", bomb);
        try (TestServer server = TestServer.open(nereid)) {
            List<HttpConnection> clients = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                HttpConnection client = server.http();
                clients.add(client);
                client.send(request, 0, request.length);
            }
            for (HttpConnection client : clients) {
                RawHttpResponse response = client.read();
                assertThat(response.status()).isEqualTo(503);
                assertThat(response.text()).contains("no memory for a tensor of ");
                assertThat(nereid.memory().bytesInUse()).isLessThanOrEqualTo(LIMIT);
                client.close();
            }
            awaitNoMemory(nereid);
            assertThat(infer(server).status()).isEqualTo(200);
        }
    }

    @ParameterizedTest
    @ValueSource(ints = {1 << 20, 40 << 20})
    void takesBodiesOfUnknownLengthThatFit(int size) throws Exception {
        NereidServer nereid =
                NereidServer.start(TestServer.of(models()).with(o -> o.tensorMemoryBytes = OptionalLong.of(LIMIT)));
        byte[] json = ("{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[" + size / Float.BYTES
                        + "],\"parameters\":{\"binary_data_size\":" + size
                        + "}}],\"parameters\":{\"binary_data_output\":true}}")
                .getBytes(US_ASCII);
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        try (GZIPOutputStream gzip = new GZIPOutputStream(body)) {
            gzip.write(json);
            gzip.write(new byte[size]);
        }
        byte[] request = HttpRequests.post(
                "/v2/models/echo/infer",
                body.toByteArray(),
                "Content-Encoding: gzip",
                "Inference-Header-Content-Length: " + json.length);
        try (TestServer server = TestServer.open(nereid);
                HttpConnection client = server.http()) {
            assertThat(client.exchange(request).status()).isEqualTo(200);
            awaitNoMemory(nereid);
        }
    }

    private Repository models() throws IOException {
        return new Repository(directory).model("echo", Repository.identity(0, "FP32", "[ -1 ]", ""));
    }

    private static byte[] begin(String headers, byte[] body) {
        ByteArrayOutputStream request = new ByteArrayOutputStream();
        request.writeBytes(("POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\n"
                        + "Inference-Header-Content-Length: 100\r\n" + headers + "\r\n")
                .getBytes(US_ASCII));
        request.writeBytes(body);
        return request.toByteArray();
    }

    private static byte[] bomb(int size) throws IOException {
        ByteArrayOutputStream coded = new ByteArrayOutputStream();
        byte[] zeros = new byte[1 << 20];
        try (GZIPOutputStream gzip = new GZIPOutputStream(coded)) {
            for (int made = 0; made < size; made += zeros.length) {
                gzip.write(zeros);
            }
        }
        return coded.toByteArray();
    }

    private static RawHttpResponse infer(TestServer server) throws IOException {
        try (HttpConnection client = server.http()) {
            return client.exchange(HttpRequests.json(
                    "echo", "{\"inputs\":[{\"name\":\"INPUT0\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}]}"));
        }
    }

    private static void awaitNoMemory(NereidServer nereid) {
        Eventually.holds(
                "all memory released", TIMEOUT_SECONDS, () -> nereid.memory().bytesInUse() == 0);
    }
}
