package dev.nereid.compatibility;

import static org.assertj.core.api.Assertions.assertThat;

import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.TreeMap;

/** The program curl, sending to one server. Immutable; leaves files in its directory. */
final class Curl {
    private static final String JSON_LENGTH = "Inference-Header-Content-Length";

    private final String server;
    private final Path directory;
    private final List<String> options;

    /** Prepares to send to a server, for instance {@code http://127.0.0.1:8000}. */
    Curl(String server, Path directory, String... options) {
        this.server = server;
        this.directory = directory;
        this.options = List.of(options);
    }

    Response get(String path, String... more) throws IOException {
        return send(path, more);
    }

    /** Sends a body. */
    Response post(String path, byte[] body, String... more) throws IOException {
        Path file = directory.resolve("request");
        Files.write(file, body);
        List<String> all = new ArrayList<>(List.of("--data-binary", "@" + file));
        all.addAll(List.of(more));
        return send(path, all.toArray(String[]::new));
    }

    /** Sends JSON and binary tensors after it. */
    Response post(String path, String json, byte[] tensors, String... more) throws IOException {
        byte[] header = json.getBytes(StandardCharsets.UTF_8);
        ByteArrayOutputStream body = new ByteArrayOutputStream();
        body.writeBytes(header);
        body.writeBytes(tensors);
        List<String> all = new ArrayList<>(List.of("-H", JSON_LENGTH + ": " + header.length));
        all.addAll(List.of(more));
        return post(path, body.toByteArray(), all.toArray(String[]::new));
    }

    private Response send(String path, String... more) throws IOException {
        Path header = directory.resolve("header");
        Path body = directory.resolve("body");
        Files.deleteIfExists(body);
        List<String> command = new ArrayList<>(List.of("curl", "-sS", "-m", "60", "-D", header.toString()));
        command.addAll(List.of("-o", body.toString()));
        command.addAll(options);
        command.addAll(List.of(more));
        command.add(server + path);
        Program.Result result = Program.run(Map.of(), command);
        assertThat(result.status()).as(command + ": " + result.out()).isZero();
        return response(Files.readAllLines(header), Files.exists(body) ? Files.readAllBytes(body) : new byte[0]);
    }

    /** Reads the last header, which follows those of interim responses. */
    private static Response response(List<String> lines, byte[] body) {
        int status = 0;
        Map<String, String> headers = new TreeMap<>();
        for (String line : lines) {
            if (line.startsWith("HTTP/")) {
                status = Integer.parseInt(line.split(" ", -1)[1]);
                headers.clear();
            } else if (line.contains(":")) {
                int colon = line.indexOf(':');
                headers.put(
                        line.substring(0, colon).toLowerCase(Locale.ROOT),
                        line.substring(colon + 1).strip());
            }
        }
        return new Response(status, headers, body);
    }

    /** A response. Immutable. */
    static final class Response {
        private final int status;
        private final Map<String, String> headers;
        private final byte[] body;

        private Response(int status, Map<String, String> headers, byte[] body) {
            this.status = status;
            this.headers = headers;
            this.body = body;
        }

        int status() {
            return status;
        }

        /** Returns the headers, by their names in lower case. */
        Map<String, String> headers() {
            return headers;
        }

        String text() {
            return new String(body, StandardCharsets.UTF_8);
        }

        /** Returns the JSON before the tensors. */
        String json() {
            return new String(body, 0, jsonLength(), StandardCharsets.UTF_8);
        }

        /** Returns the binary tensors after the JSON. */
        byte[] tensors() {
            return Arrays.copyOfRange(body, jsonLength(), body.length);
        }

        private int jsonLength() {
            String length = headers.get(JSON_LENGTH.toLowerCase(Locale.ROOT));
            return length == null ? body.length : Integer.parseInt(length);
        }
    }
}
