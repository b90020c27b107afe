package dev.nereid.http.body;

import static dev.nereid.http.RawHttpConnection.bytes;
import static dev.nereid.http.RawHttpConnection.join;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.LeakCheckingMemory;
import dev.nereid.testkit.ReceivedRequest;
import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.Arrays;
import java.util.Random;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.zip.DeflaterOutputStream;
import java.util.zip.GZIPInputStream;
import java.util.zip.GZIPOutputStream;
import java.util.zip.InflaterInputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.Timeout;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;
import org.junit.jupiter.params.provider.ValueSource;

/** Compressed request and response bodies. */
@Timeout(60)
class ContentCodingIT {
    private static final String INFER = "/v2/models/id/infer";
    private static final String ONE_TO_FOUR =
            "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1,4],\"datatype\":\"FP32\",\"data\":[1,2,3,4]}]}";
    private static final String GZIP = "Content-Encoding: gzip\r\n";

    private RunningFrontend frontend;

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
    }

    @AfterEach
    void stop() {
        frontend.close();
    }

    @ParameterizedTest
    @CsvSource({"gzip, gzip", "gzip, deflate", "deflate, deflate", "deflate, gzip"})
    void detectsTheFormatOfABody(String declared, String sent) throws IOException {
        RawHttpConnection.Response response =
                infer("Content-Encoding: " + declared + "\r\n", code(sent, bytes(ONE_TO_FOUR)));

        assertThat(response.status()).isEqualTo(200);
        assertThat(response.text()).contains("[1.0,2.0,3.0,4.0]");
        assertThat(response.header("content-encoding")).isEmpty();
    }

    @Test
    void countsTheHeaderLengthInTheInflatedBody() throws IOException {
        byte[] data = new byte[2_000_000];
        new Random(1).nextBytes(data);
        byte[] body = join(bytes(binary(data.length)), data);

        RawHttpConnection.Response response =
                infer(GZIP + "Inference-Header-Content-Length: " + (body.length - data.length) + "\r\n", gzip(body));

        assertThat(response.body()).endsWith(data);
        assertError(
                infer(GZIP + "Inference-Header-Content-Length: 100\r\n", gzip(bytes(ONE_TO_FOUR))),
                400,
                "inference header size should be in range (0, 79), got: 100");
    }

    @Test
    void acceptsRawBodiesAndChunks() throws IOException {
        byte[] coded = gzip(new byte[] {1, 2, 3});
        ByteArrayOutputStream chunks = new ByteArrayOutputStream();
        for (byte next : coded) {
            chunks.writeBytes(join(bytes("1\r\n"), new byte[] {next}, bytes("\r\n")));
        }
        chunks.writeBytes(bytes("0\r\n\r\n"));

        try (RawHttpConnection connection = frontend.connect()) {
            RawHttpConnection.Response response = connection
                    .send(join(
                            bytes("POST /v2/models/plain/infer HTTP/1.1\r\nHost: x\r\n" + GZIP
                                    + "Inference-Header-Content-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n"),
                            chunks.toByteArray()))
                    .receive();

            assertThat(response.text()).endsWith("{\"binary_data_size\":3}}]}\u0001\u0002\u0003");
        }
    }

    @Test
    void acceptsSeveralGzipFilesAsOneBody() throws IOException {
        byte[] body = bytes(ONE_TO_FOUR);
        byte[] coded = join(gzip(Arrays.copyOf(body, 30)), gzip(Arrays.copyOfRange(body, 30, body.length)));

        assertThat(infer(GZIP, coded).text()).contains("[1.0,2.0,3.0,4.0]");
    }

    @Test
    void ignoresBytesBehindTheEnd() throws IOException {
        assertThat(infer(GZIP, join(gzip(bytes(ONE_TO_FOUR)), bytes("xx"))).status())
                .isEqualTo(200);
        assertThat(infer(GZIP, join(code("deflate", bytes(ONE_TO_FOUR)), bytes("xx")))
                        .status())
                .isEqualTo(200);
    }

    @Test
    void refusesCorruptBodies() throws IOException {
        byte[] good = gzip(bytes(ONE_TO_FOUR));
        byte[] wrong = good.clone();
        wrong[good.length - 5] ^= 1;

        String failure = "Unable to decompress the request: ";
        assertError(infer(GZIP, new byte[0]), 400, "nothing to be decompressed");
        assertError(infer(GZIP, bytes(ONE_TO_FOUR)), 400, failure + "incorrect header check");
        assertError(infer(GZIP, Arrays.copyOf(good, good.length - 9)), 400, failure + "its end is missing");
        assertError(infer(GZIP, Arrays.copyOf(good, 5)), 400, failure + "its end is missing");
        assertError(infer(GZIP, wrong), 400, failure + "its checksum does not match");
        assertError(infer(GZIP, new byte[] {0x1F, 0, 8}), 400, failure + "this is not gzip");
        assertThat(infer(GZIP, bytes(ONE_TO_FOUR)).header("content-type")).isEqualTo("text/plain");
    }

    @Test
    void refusesABombBeforeItsMemoryIsAllocated() throws IOException {
        byte[] bomb = gzip(new byte[64 << 20]);
        LeakCheckingMemory little = new LeakCheckingMemory(2 << 20);

        try (RunningFrontend poor = new RunningFrontend(RunningFrontend.OPTIONS, little);
                RawHttpConnection connection = poor.connect()) {
            assertError(
                    connection.post(INFER, GZIP, bomb).receive(),
                    400,
                    "Decompressed data size exceeds the maximum allowed value of 1048576 bytes. Use"
                            + " --http-max-input-size to increase the limit.");
            assertThat(little.bytesInUse()).isZero();
            assertThat(connection.post(INFER, "", bytes(ONE_TO_FOUR)).receive().status())
                    .isEqualTo(200);
        }
    }

    @Test
    void limitsBinaryBodiesByTheLimitOfAllBodies() throws IOException {
        assertError(
                infer(GZIP + "Inference-Header-Content-Length: 0\r\n", gzip(new byte[(16 << 20) + 1])),
                400,
                "Decompressed data size exceeds the maximum allowed value of 16777216 bytes. Use"
                        + " --http-max-request-size to increase the limit.");
        assertThat(infer(GZIP + "Inference-Header-Content-Length: 0\r\n", gzip(new byte[16 << 20]))
                        .status())
                .isEqualTo(200);
    }

    @Test
    void acceptsIncompressibleDataUpToTheLimit() throws IOException {
        byte[] data = new byte[16 << 20];
        new Random(1).nextBytes(data);
        byte[] coded = gzip(data);

        assertThat(coded).hasSizeGreaterThan(16 << 20);
        assertThat(infer(GZIP + "Inference-Header-Content-Length: 0\r\n", coded).status())
                .isEqualTo(200);
        assertError(
                infer(GZIP + "Inference-Header-Content-Length: 0\r\n", new byte[(16 << 20) + (32 << 10)]),
                400,
                "Raw input has a byte_size (16809984 bytes) that exceeds the maximum allowed value of 16777216 bytes. Use"
                        + " --http-max-request-size to increase the limit.");
    }

    @Test
    void namesTheLimitThatACompressedTextExceeds() throws IOException {
        assertError(
                infer(GZIP, new byte[(16 << 20) + (32 << 10)]),
                400,
                "request has a size (16809984 bytes) that exceeds the maximum allowed value of 16777216 bytes. Use"
                        + " --http-max-request-size to increase the limit.");
    }

    @Test
    void servesOthersWhileItInflates() throws Exception {
        byte[] large = gzip(new byte[16 << 20]);
        try (RawHttpConnection first = frontend.connect();
                RawHttpConnection second = frontend.connect()) {
            first.post(INFER, GZIP + "Inference-Header-Content-Length: 0\r\n", large);
            assertThat(second.post(INFER, "", bytes(ONE_TO_FOUR)).receive().status())
                    .isEqualTo(200);
            assertThat(first.receive().body()).hasSizeGreaterThan(16 << 20);
        }
    }

    @Test
    void releasesTheMemoryOfAClientThatDisconnectsInTheMiddle() throws IOException {
        byte[] half = Arrays.copyOf(gzip(new byte[4 << 20]), 3000);
        try (RawHttpConnection connection = frontend.connect()) {
            connection.send(join(
                    bytes("POST " + INFER + " HTTP/1.1\r\nHost: x\r\n" + GZIP
                            + "Inference-Header-Content-Length: 0\r\nContent-Length: 100000\r\n\r\n"),
                    half));
        }
    }

    @ParameterizedTest
    @CsvSource(
            delimiter = '|',
            value = {
                "gzip | gzip",
                "deflate | deflate",
                "gzip, deflate | gzip",
                "deflate, gzip | deflate",
                "gzip;q=0.1,deflate;q=0.9 | deflate",
                "gzip; q=0.1, identity; q=0.5 | ''",
                "gzip;q=0 | ''",
                "br, * | ''",
                "gzip;q=x, GZIP;q=0.1 | gzip",
                "'' | ''",
            })
    void choosesTheCodingOfTheResponse(String accepted, String chosen) throws IOException {
        RawHttpConnection.Response response = infer("Accept-Encoding: " + accepted + "\r\n", bytes(ONE_TO_FOUR));

        assertThat(response.header("content-encoding")).isEqualTo(chosen);
        assertThat(response.header("content-type")).isEqualTo("application/json");
        assertThat(decode(chosen, response.body())).asString().endsWith("\"data\":[1.0,2.0,3.0,4.0]}]}");
    }

    @ParameterizedTest
    @ValueSource(ints = {4, 4096, 4100, 70_000, 5_000_000})
    void compressesResponsesOfEverySize(int size) throws IOException {
        byte[] data = new byte[size];
        new Random(size).nextBytes(data);
        String header = binary(size);
        for (String coding : new String[] {"gzip", "deflate"}) {
            RawHttpConnection.Response response = infer(
                    "Accept-Encoding: " + coding + "\r\nInference-Header-Content-Length: " + header.length() + "\r\n",
                    join(bytes(header), data));

            byte[] body = decode(coding, response.body());
            int json = Integer.parseInt(response.header("inference-header-content-length"));
            assertThat(response.header("content-type")).isEqualTo("application/octet-stream");
            assertThat(Arrays.copyOfRange(body, json, body.length)).isEqualTo(data);
        }
    }

    @Test
    void doesNotCompressErrors() throws IOException {
        RawHttpConnection.Response response = infer("Accept-Encoding: gzip\r\n", bytes("{}"));

        assertThat(response.header("content-encoding")).isEmpty();
        assertThat(response.text()).startsWith("{\"error\":");
    }

    @Test
    void closesTheResponseOfAClientThatDisconnectsDuringCompression() throws Exception {
        BlockingQueue<ReceivedRequest> calls = new LinkedBlockingQueue<>();
        frontend.server.add(FakeModel.identity("late", DataType.UINT8, 0, -1).responding(calls::add));
        ReceivedRequest received;
        try (RawHttpConnection connection = frontend.connect()) {
            connection.post(
                    "/v2/models/late/infer",
                    "Accept-Encoding: gzip\r\nInference-Header-Content-Length: 0\r\n",
                    new byte[1 << 20]);
            received = calls.poll(20, TimeUnit.SECONDS);
        }

        assertThat(received).isNotNull();
        received.respondWithInputs();

        try (RawHttpConnection watcher = frontend.connect()) {
            long deadline = System.nanoTime() + TimeUnit.SECONDS.toNanos(20);
            while (frontend.memory.buffersInUse() > 0 && System.nanoTime() < deadline) {
                watcher.request("GET", "/v2").receive();
            }
        }
        frontend.memory.close();
    }

    private RawHttpConnection.Response infer(String headers, byte[] body) throws IOException {
        try (RawHttpConnection connection = frontend.connect()) {
            return connection.post(INFER, headers, body).receive();
        }
    }

    private static void assertError(RawHttpConnection.Response response, int status, String error) {
        assertThat(response.text()).isEqualTo("{\"error\":\"" + error + "\"}");
        assertThat(response.status()).isEqualTo(status);
    }

    private static String binary(int size) {
        return "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[1," + size / 4
                + "],\"datatype\":\"FP32\",\"parameters\":{\"binary_data_size\":" + size
                + "}}],\"parameters\":{\"binary_data_output\":true}}";
    }

    private static byte[] gzip(byte[] data) throws IOException {
        return code("gzip", data);
    }

    private static byte[] code(String coding, byte[] data) throws IOException {
        ByteArrayOutputStream coded = new ByteArrayOutputStream();
        try (OutputStream out = coding.equals("gzip") ? new GZIPOutputStream(coded) : new DeflaterOutputStream(coded)) {
            out.write(data);
        }
        return coded.toByteArray();
    }

    private static byte[] decode(String coding, byte[] data) throws IOException {
        InputStream in = new ByteArrayInputStream(data);
        try (InputStream decoded = switch (coding) {
            case "gzip" -> new GZIPInputStream(in);
            case "deflate" -> new InflaterInputStream(in);
            default -> in;
        }) {
            return decoded.readAllBytes();
        }
    }
}
