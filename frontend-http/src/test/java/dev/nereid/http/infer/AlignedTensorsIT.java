package dev.nereid.http.infer;

import static dev.nereid.http.RawHttpConnection.bytes;
import static dev.nereid.http.RawHttpConnection.join;
import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.http.RawHttpConnection;
import dev.nereid.http.RunningFrontend;
import dev.nereid.spi.DataType;
import dev.nereid.testkit.FakeModel;
import dev.nereid.testkit.ReceivedRequest;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.zip.GZIPOutputStream;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

/** The first binary tensor of a request is aligned, whatever the length of the JSON before it. */
class AlignedTensorsIT {
    private static final int ALIGNMENT = 64;

    private final List<Long> addresses = new CopyOnWriteArrayList<>();
    private RunningFrontend frontend;

    @BeforeEach
    void start() throws IOException {
        frontend = new RunningFrontend(RunningFrontend.OPTIONS);
        frontend.server.add(FakeModel.identity("id", DataType.UINT8, 0, -1).responding(this::respond));
    }

    @AfterEach
    void stop() {
        frontend.close();
    }

    private void respond(ReceivedRequest received) {
        addresses.add(received.request().inputs().getFirst().data().address());
        received.respondWithInputs();
    }

    /** How the client sends a body. */
    enum Transfer {
        WHOLE,
        IN_CHUNKS,
        COMPRESSED
    }

    @ParameterizedTest
    @CsvSource({
        "WHOLE, 100",
        "WHOLE, 5000",
        "WHOLE, 70000",
        "WHOLE, 3000000",
        "IN_CHUNKS, 100",
        "IN_CHUNKS, 700000",
        "COMPRESSED, 100",
        "COMPRESSED, 700000"
    })
    void alignsTheTensorBehindJsonOfAnyLength(Transfer transfer, int size) throws IOException {
        byte[] data = new byte[size];
        new Random(size).nextBytes(data);
        String json = "{\"inputs\":[{\"name\":\"INPUT0\",\"shape\":[" + size
                + "],\"datatype\":\"UINT8\",\"parameters\":{\"binary_data_size\":" + size
                + "}}],\"parameters\":{\"binary_data_output\":true}}";

        for (int spaces : new int[] {0, 1, 7, 32, 63, 64}) {
            String text = json + " ".repeat(spaces);
            for (int i = 0; i < 2; i++) { // the second text may be cached
                byte[] response = infer(transfer, text.length(), join(bytes(text), data));
                assertThat(Arrays.copyOfRange(response, response.length - size, response.length))
                        .isEqualTo(data);
            }
        }

        assertThat(addresses).hasSize(12).allMatch(address -> address % ALIGNMENT == 0);
    }

    private byte[] infer(Transfer transfer, int jsonLength, byte[] body) throws IOException {
        String headers = "Inference-Header-Content-Length: " + jsonLength + "\r\n";
        String path = "/v2/models/id/infer";
        try (RawHttpConnection connection = frontend.connect()) {
            switch (transfer) {
                case WHOLE -> connection.post(path, headers, body);
                case IN_CHUNKS ->
                    connection.send(join(
                            bytes("POST " + path + " HTTP/1.1\r\nHost: x\r\n" + headers
                                    + "Transfer-Encoding: chunked\r\n\r\n" + Integer.toHexString(body.length)
                                    + "\r\n"),
                            body,
                            bytes("\r\n0\r\n\r\n")));
                case COMPRESSED -> connection.post(path, headers + "Content-Encoding: gzip\r\n", gzip(body));
            }
            RawHttpConnection.Response response = connection.receive();
            assertThat(response.status()).isEqualTo(200);
            return response.body();
        }
    }

    private static byte[] gzip(byte[] data) throws IOException {
        ByteArrayOutputStream coded = new ByteArrayOutputStream();
        try (GZIPOutputStream out = new GZIPOutputStream(coded)) {
            out.write(data);
        }
        return coded.toByteArray();
    }
}
