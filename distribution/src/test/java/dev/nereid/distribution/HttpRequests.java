package dev.nereid.distribution;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;

/** Writes requests of HTTP/1.1 as bytes. */
final class HttpRequests {
    private HttpRequests() {}

    static byte[] get(String path) {
        return head("GET " + path + " HTTP/1.1\r\nHost: test\r\n", "", new byte[0]);
    }

    /** Writes a request with a body; the headers come without line ends. */
    static byte[] post(String path, byte[] body, String... headers) {
        return postOf(path, body, "Content-Length: " + body.length, headers);
    }

    /** Writes a request whose length is told by the given header. */
    static byte[] postOf(String path, byte[] body, String length, String... headers) {
        String more = headers.length == 0 ? "" : String.join("\r\n", headers) + "\r\n";
        return head("POST " + path + " HTTP/1.1\r\nHost: test\r\n" + length + "\r\n", more, body);
    }

    /** Writes an inference whose body is JSON alone. */
    static byte[] json(String model, String json, String... headers) {
        return post("/v2/models/" + model + "/infer", json.getBytes(StandardCharsets.UTF_8), headers);
    }

    private static byte[] head(String head, String more, byte[] body) {
        ByteArrayOutputStream request = new ByteArrayOutputStream();
        request.writeBytes((head + more + "\r\n").getBytes(StandardCharsets.UTF_8));
        request.writeBytes(body);
        return request.toByteArray();
    }
}
