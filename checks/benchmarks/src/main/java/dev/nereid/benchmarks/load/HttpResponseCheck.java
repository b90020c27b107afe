package dev.nereid.benchmarks.load;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpRequest.BodyPublishers;
import java.net.http.HttpResponse;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Checks the HTTP response of a server once before a workload begins. */
public final class HttpResponseCheck {
    private static final String HEADER_LENGTH = "Inference-Header-Content-Length";
    private static final int OK = 200;

    /** Sums differ slightly when they are added in another order, as in another batch. */
    private static final float TOLERANCE = 1e-3f;

    private HttpResponseCheck() {}

    /** Throws unless a model returns the given FP32 content of its only output. */
    public static void check(String url, InferBody body, ByteBuffer expected) throws IOException, InterruptedException {
        ByteBuffer content = content(url, body);
        if (content.remaining() != expected.remaining()) {
            throw new IOException(url + ": response of " + content.remaining() + " bytes (expected: "
                    + expected.remaining() + " bytes)");
        }
        for (int at = 0; at < content.remaining(); at += Float.BYTES) {
            float actual = content.getFloat(content.position() + at);
            float right = expected.getFloat(expected.position() + at);
            // Written so that it also fails for NaN.
            if (!(Math.abs(actual - right) <= TOLERANCE * Math.max(1, Math.abs(right)))) {
                throw new IOException(
                        url + ": element " + at / Float.BYTES + ": " + actual + " (expected: " + right + ")");
            }
        }
    }

    private static ByteBuffer content(String url, InferBody body) throws IOException, InterruptedException {
        HttpRequest request = HttpRequest.newBuilder(URI.create(url))
                .header("Content-Type", "application/octet-stream")
                .header(HEADER_LENGTH, "" + body.headerLength())
                .POST(BodyPublishers.ofByteArray(body.http()))
                .build();
        try (HttpClient client =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build()) {
            HttpResponse<byte[]> response = client.send(request, BodyHandlers.ofByteArray());
            if (response.statusCode() != OK) {
                throw new IOException(url + ": " + response.statusCode() + " "
                        + new String(response.body(), StandardCharsets.UTF_8) + " (expected: " + OK + ")");
            }
            int headerLength = (int) response.headers()
                    .firstValueAsLong(HEADER_LENGTH)
                    .orElseThrow(() -> new IOException(url + ": no " + HEADER_LENGTH + " (expected: binary output)"));
            return ByteBuffer.wrap(response.body())
                    .position(headerLength)
                    .slice()
                    .order(ByteOrder.LITTLE_ENDIAN);
        }
    }
}
