package dev.nereid.distribution.testing;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/** Writes requests of HTTP/1.1 as bytes. */
public final class HttpRequests {
    private HttpRequests() {}

    public static byte[] get(String path) {
        return header("GET " + path + " HTTP/1.1\r\nHost: test\r\n", "", new byte[0]);
    }

    /** Writes a request with a body; the headers are without line ends. */
    public static byte[] post(String path, byte[] body, String... headers) {
        return postOf(path, body, "Content-Length: " + body.length, headers);
    }

    /** Writes a request with the given header for its length. */
    public static byte[] postOf(String path, byte[] body, String length, String... headers) {
        String more = headers.length == 0 ? "" : String.join("\r\n", headers) + "\r\n";
        return header("POST " + path + " HTTP/1.1\r\nHost: test\r\n" + length + "\r\n", more, body);
    }

    /** Writes an inference request with a JSON body. */
    public static byte[] json(String model, String json, String... headers) {
        return post("/v2/models/" + model + "/infer", json.getBytes(StandardCharsets.UTF_8), headers);
    }

    private static byte[] header(String requestLine, String more, byte[] body) {
        ByteArrayOutputStream request = new ByteArrayOutputStream();
        request.writeBytes((requestLine + more + "\r\n").getBytes(StandardCharsets.UTF_8));
        request.writeBytes(body);
        return request.toByteArray();
    }
}
