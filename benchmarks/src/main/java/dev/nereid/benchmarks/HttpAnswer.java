package dev.nereid.benchmarks;

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

/** What a server answers over HTTP, looked at once before the load begins: fast wrong answers are no figures. */
final class HttpAnswer {
    private static final String HEAD_LENGTH = "Inference-Header-Content-Length";
    private static final int OK = 200;

    /** Sums come out a little different when they are added in another order, as in another batch. */
    private static final float TOLERANCE = 1e-3f;

    private HttpAnswer() {}

    /**
     * Throws unless a model answers with the given content.
     *
     * @param url where the model is asked
     * @param body what it is asked
     * @param expected FP32 content of its only output
     */
    static void check(String url, InferBody body, ByteBuffer expected) throws IOException, InterruptedException {
        ByteBuffer content = content(url, body);
        if (content.remaining() != expected.remaining()) {
            throw new IOException(url + ": answered " + content.remaining() + " bytes (expected: "
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
                .header(HEAD_LENGTH, "" + body.headLength())
                .POST(BodyPublishers.ofByteArray(body.http()))
                .build();
        try (HttpClient client =
                HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build()) {
            HttpResponse<byte[]> response = client.send(request, BodyHandlers.ofByteArray());
            if (response.statusCode() != OK) {
                throw new IOException(url + ": " + response.statusCode() + " "
                        + new String(response.body(), StandardCharsets.UTF_8) + " (expected: " + OK + ")");
            }
            int head = (int) response.headers()
                    .firstValueAsLong(HEAD_LENGTH)
                    .orElseThrow(() -> new IOException(url + ": no " + HEAD_LENGTH + " (expected: binary output)"));
            return ByteBuffer.wrap(response.body()).position(head).slice().order(ByteOrder.LITTLE_ENDIAN);
        }
    }
}
