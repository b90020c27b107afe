package dev.nereid.storage.s3.testing;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A server of the S3 protocol in a process of its own: Adobe S3Mock, with one bucket. Ended by its close. For other
 * modules too.
 */
public final class S3Server implements AutoCloseable {
    public static final String BUCKET = "models";

    private static final Pattern PORTS =
            Pattern.compile("Tomcat started on ports (\\d+) \\(https\\), (\\d+) \\(http\\)");
    private static final int CREATED_AT_MOST = 299;

    private final Process process;
    private final HttpClient client = HttpClient.newHttpClient();
    private int httpPort;
    private int httpsPort;

    private S3Server(Process process) {
        this.process = process;
    }

    /**
     * Starts the server and waits until it listens.
     *
     * @param directory an empty directory for its objects
     */
    public static S3Server start(Path directory) throws IOException {
        Process process = new ProcessBuilder(
                        Path.of(System.getProperty("java.home"), "bin", "java").toString(),
                        "-Xmx256m",
                        "-XX:TieredStopAtLevel=1",
                        "-cp",
                        System.getProperty("nereid.s3mock") + "/*",
                        "com.adobe.testing.s3mock.S3MockApplication",
                        "--server.port=0",
                        "--server.address=127.0.0.1",
                        "--com.adobe.testing.s3mock.http-port=0",
                        "--com.adobe.testing.s3mock.max-payload-size=100MB",
                        "--com.adobe.testing.s3mock.store.root=" + directory,
                        "--com.adobe.testing.s3mock.store.initial-buckets=" + BUCKET)
                .redirectErrorStream(true)
                .start();
        S3Server server = new S3Server(process);
        boolean ready = false;
        try {
            server.awaitReady();
            ready = true;
            return server;
        } finally {
            if (!ready) {
                server.close();
            }
        }
    }

    /** Returns host and port without TLS. */
    public String address() {
        return "127.0.0.1:" + httpPort;
    }

    /** Returns host and port with TLS, by a certificate that nobody trusts. */
    public String tlsAddress() {
        return "127.0.0.1:" + httpsPort;
    }

    /** Stores an object. */
    public void put(String key, byte[] content) {
        send(HttpRequest.newBuilder(uri(key)).PUT(HttpRequest.BodyPublishers.ofByteArray(content)));
    }

    /** Stores an object. */
    public void put(String key, String content) {
        put(key, content.getBytes(StandardCharsets.UTF_8));
    }

    /** Stores the files of a directory below a key. */
    public void putAll(String key, Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            for (Path file : files.filter(Files::isRegularFile).toList()) {
                put(key + "/" + directory.relativize(file), Files.readAllBytes(file));
            }
        }
    }

    /** Deletes an object. */
    public void delete(String key) {
        send(HttpRequest.newBuilder(uri(key)).DELETE());
    }

    @Override
    public void close() {
        process.destroyForcibly();
        client.close();
        try {
            process.waitFor(30, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private URI uri(String key) {
        StringBuilder path = new StringBuilder();
        for (byte value : key.getBytes(StandardCharsets.UTF_8)) {
            boolean plain = value == '/'
                    || value == '.'
                    || value == '-'
                    || value == '_'
                    || (value > 0 && Character.isLetterOrDigit(value));
            path.append(plain ? String.valueOf((char) value) : "%%%02X".formatted(value));
        }
        return URI.create("http://" + address() + "/" + BUCKET + "/" + path);
    }

    private void send(HttpRequest.Builder request) {
        try {
            HttpResponse<String> response = client.send(request.build(), HttpResponse.BodyHandlers.ofString());
            if (response.statusCode() > CREATED_AT_MOST) {
                throw new AssertionError(response + ": " + response.body());
            }
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
    }

    private void awaitReady() throws IOException {
        BufferedReader reader = process.inputReader(StandardCharsets.UTF_8);
        List<String> seen = new ArrayList<>();
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            seen.add(line);
            Matcher ports = PORTS.matcher(line);
            if (ports.find()) {
                httpsPort = Integer.parseInt(ports.group(1));
                httpPort = Integer.parseInt(ports.group(2));
            }
            if (line.contains(": Started ") && httpPort > 0) {
                Thread.startVirtualThread(() -> drain(reader));
                return;
            }
        }
        throw new AssertionError("S3Mock ended: " + seen);
    }

    private static void drain(BufferedReader reader) {
        try {
            while (reader.readLine() != null) {}
        } catch (IOException e) {
            // the process ended
        }
    }
}
