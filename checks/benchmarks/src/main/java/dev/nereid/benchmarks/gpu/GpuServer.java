package dev.nereid.benchmarks.gpu;

import dev.nereid.benchmarks.load.Exchange;
import dev.nereid.benchmarks.load.Loopback;
import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.SocketFactory;

/** The installed server as a child process. Owned by the check that started it. */
final class GpuServer implements AutoCloseable {
    private static final int OK = 200;
    private static final Duration START_TIMEOUT = Duration.ofMinutes(5);
    private static final long POLL_MILLIS = 20;

    private final Process process;
    private final Path log;
    private final int httpPort = Loopback.freePort();
    private final int grpcPort = Loopback.freePort();
    private final int metricsPort = Loopback.freePort();
    private final HttpClient client = HttpClient.newHttpClient();

    /** Starts a server that logs into a directory, with more flags than those of the ports; waits until it is ready. */
    GpuServer(Path home, Path directory, List<String> flags) throws IOException, InterruptedException {
        log = directory.resolve("server-" + httpPort + ".log");
        List<String> command = new ArrayList<>(List.of(
                home.resolve("bin/nereid").toString(),
                "serve",
                "--http-port=" + httpPort,
                "--grpc-port=" + grpcPort,
                "--metrics-port=" + metricsPort,
                "--plugin-cache-directory=" + directory.resolve("plugin-cache"),
                "--allow-client-shm=true"));
        command.addAll(flags);
        process = new ProcessBuilder(command)
                .redirectErrorStream(true)
                .redirectOutput(log.toFile())
                .start();
        boolean started = false;
        try {
            awaitReady();
            started = true;
        } finally {
            if (!started) {
                close();
            }
        }
    }

    private void awaitReady() throws IOException, InterruptedException {
        long start = System.nanoTime();
        byte[] request = Exchange.get("/v2/health/ready");
        while (Exchange.status(SocketFactory.getDefault(), httpPort, request).orElse(0) != OK) {
            if (process.waitFor(POLL_MILLIS, TimeUnit.MILLISECONDS)) {
                throw new IOException("server: ended at its start:\n" + Files.readString(log));
            }
            if (System.nanoTime() - start > START_TIMEOUT.toNanos()) {
                throw new IOException("server: not ready within " + START_TIMEOUT + ":\n" + Files.readString(log));
            }
        }
    }

    String log() throws IOException {
        return Files.readString(log);
    }

    int httpPort() {
        return httpPort;
    }

    int grpcPort() {
        return grpcPort;
    }

    String metrics() throws IOException, InterruptedException {
        return client.send(request(metricsPort, "/metrics").GET().build(), HttpResponse.BodyHandlers.ofString())
                .body();
    }

    int status(String path) throws IOException, InterruptedException {
        return client.send(request(httpPort, path).GET().build(), HttpResponse.BodyHandlers.discarding())
                .statusCode();
    }

    String get(String path) throws IOException, InterruptedException {
        return client.send(request(httpPort, path).GET().build(), HttpResponse.BodyHandlers.ofString())
                .body();
    }

    HttpResponse<String> post(String path, String body) throws IOException, InterruptedException {
        return client.send(
                request(httpPort, path)
                        .POST(HttpRequest.BodyPublishers.ofString(body))
                        .build(),
                HttpResponse.BodyHandlers.ofString());
    }

    private static HttpRequest.Builder request(int port, String path) {
        return HttpRequest.newBuilder(URI.create("http://" + Loopback.ADDRESS + ":" + port + path))
                .timeout(Duration.ofMinutes(1));
    }

    @Override
    public void close() {
        process.destroy();
        try {
            if (!process.waitFor(40, TimeUnit.SECONDS)) {
                process.destroyForcibly();
            }
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
        client.close();
    }
}
