package dev.nereid.cache.redis;

import static org.junit.jupiter.api.Assumptions.assumeTrue;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** A Redis in a process of its own, without files on disk. Confined to one test; ended by its close. */
final class RedisServer implements AutoCloseable {
    private final Process process;
    private final int port;

    private RedisServer(Process process, int port) {
        this.process = process;
        this.port = port;
    }

    /** Skips the test where a program is missing. */
    static void assumeInstalled(String program, String option) {
        boolean installed;
        try {
            installed = new ProcessBuilder(program, option)
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                            .start()
                            .waitFor()
                    == 0;
        } catch (IOException e) {
            installed = false;
        } catch (InterruptedException e) {
            throw new IllegalStateException(e);
        }
        assumeTrue(installed, program + " is not installed");
    }

    static int freePort() throws IOException {
        try (ServerSocket socket = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            return socket.getLocalPort();
        }
    }

    /** Starts Redis and waits until it listens. */
    static RedisServer start(int port, Path directory, String... options) throws IOException {
        List<String> command = new ArrayList<>(List.of("redis-server", "--port", String.valueOf(port)));
        command.addAll(List.of("--bind", "127.0.0.1", "--save", "", "--appendonly", "no"));
        command.addAll(Arrays.asList(options));
        Process process = new ProcessBuilder(command)
                .directory(directory.toFile())
                .redirectErrorStream(true)
                .start();
        RedisServer server = new RedisServer(process, port);
        server.awaitReady();
        return server;
    }

    int port() {
        return port;
    }

    /** Suspends the process, as on an overloaded machine. */
    void signal(String name) throws IOException, InterruptedException {
        new ProcessBuilder("kill", "-" + name, String.valueOf(process.pid()))
                .start()
                .waitFor();
    }

    @Override
    public void close() {
        process.destroyForcibly();
        try {
            process.waitFor(30, TimeUnit.SECONDS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private void awaitReady() throws IOException {
        BufferedReader reader = process.inputReader(StandardCharsets.UTF_8);
        List<String> seen = new ArrayList<>();
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            seen.add(line);
            if (line.contains("Ready to accept connections")) {
                Thread.startVirtualThread(() -> drain(reader));
                return;
            }
        }
        throw new AssertionError(seen);
    }

    private static void drain(BufferedReader reader) {
        try {
            while (reader.readLine() != null) {}
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
