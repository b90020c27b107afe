package dev.nereid.benchmarks.process;

import dev.nereid.benchmarks.load.Exchange;
import dev.nereid.benchmarks.load.Loopback;
import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.TimeUnit;
import javax.net.SocketFactory;

/** The packaged server as a child process. Owned by, and confined to, the thread that measures. */
public final class NereidProcess implements AutoCloseable {
    private static final int OK = 200;
    private static final long POLL_MILLIS = 2;
    private static final Duration START_TIMEOUT = Duration.ofMinutes(1);
    private static final int LINES_OF_LOG = 20;
    private static final long BYTES_PER_KB = 1024;

    private final BenchmarkRun bench;
    private final SocketFactory sockets;
    private final Process process;
    private final long startNanos;
    private final Path log;
    private final int httpPort;
    private final int grpcPort;

    private NereidProcess(BenchmarkRun bench, Launch launch, SocketFactory sockets) throws IOException {
        this.bench = bench;
        this.sockets = sockets;
        httpPort = Loopback.freePort();
        grpcPort = Loopback.freePort();
        log = bench.workspace().path("server-" + httpPort + ".log");
        List<String> command = new ArrayList<>(List.of(
                launch.home().resolve("bin/nereid").toString(),
                "serve",
                "--model-repository=" + launch.repository(),
                "--http-address=" + Loopback.ADDRESS,
                "--http-port=" + httpPort,
                "--grpc-address=" + Loopback.ADDRESS,
                "--grpc-port=" + grpcPort,
                "--metrics-port=0"));
        command.addAll(launch.flags());
        ProcessBuilder builder =
                new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile());
        startNanos = System.nanoTime();
        process = bench.children().start(builder);
    }

    /** Starts a server, and waits until it is ready. Blocks. */
    public static NereidProcess start(BenchmarkRun bench, Launch launch) throws IOException, InterruptedException {
        return start(bench, launch, SocketFactory.getDefault());
    }

    /** Starts a server, and waits for its readiness, requested on connections of the given kind. Blocks. */
    public static NereidProcess start(BenchmarkRun bench, Launch launch, SocketFactory sockets)
            throws IOException, InterruptedException {
        NereidProcess server = new NereidProcess(bench, launch, sockets);
        try {
            server.awaitOk(Exchange.get("/v2/health/ready"));
            return server;
        } catch (IOException | InterruptedException e) {
            server.close();
            throw e;
        }
    }

    /** Starts a server, and waits until it is ready, at most for the timeout. Blocks. */
    public static NereidProcess start(BenchmarkRun bench, Launch launch, Duration timeout)
            throws IOException, InterruptedException {
        NereidProcess server = launch(bench, launch);
        try {
            server.awaitOk(Exchange.get("/v2/health/ready"), timeout);
            return server;
        } catch (IOException | InterruptedException e) {
            server.close();
            throw e;
        }
    }

    /** Starts a server, and does not wait. */
    public static NereidProcess launch(BenchmarkRun bench, Launch launch) throws IOException {
        return new NereidProcess(bench, launch, SocketFactory.getDefault());
    }

    /** Sends HTTP requests until one succeeds; returns the time from the start of the process to that. Blocks. */
    public Duration awaitOk(byte[] request) throws IOException, InterruptedException {
        return awaitOk(request, START_TIMEOUT);
    }

    private Duration awaitOk(byte[] request, Duration timeout) throws IOException, InterruptedException {
        while (Exchange.status(sockets, httpPort, request).orElse(0) != OK) {
            if (process.waitFor(POLL_MILLIS, TimeUnit.MILLISECONDS)) {
                throw new IOException("server: ended at its start:\n" + lastLines());
            }
            if (age().compareTo(timeout) > 0) {
                throw new IOException("server: not ready within " + timeout.toSeconds() + " s:\n" + lastLines());
            }
        }
        return age();
    }

    /** Waits while the server has nothing to do. Blocks. */
    public void idle(Duration time) throws IOException, InterruptedException {
        if (process.waitFor(time.toMillis(), TimeUnit.MILLISECONDS)) {
            throw new IOException("server: ended while idle:\n" + lastLines());
        }
    }

    /** Returns how much memory of the process is resident, in bytes. */
    public long residentBytes() throws IOException {
        return BYTES_PER_KB * status("VmRSS:");
    }

    public long threads() throws IOException {
        return status("Threads:");
    }

    private long status(String field) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc", "" + process.pid(), "status"))) {
            if (line.startsWith(field)) {
                return Long.parseLong(line.replaceAll("\\D", ""));
            }
        }
        throw new IOException("server: " + field + " cannot be read");
    }

    /** Returns how long the process has used processors, all threads together. */
    public Duration processorTime() throws IOException {
        return process.info()
                .totalCpuDuration()
                .orElseThrow(() -> new IOException("server: its use of processors cannot be read"));
    }

    /** Returns the numbers of the processes that the server has started and that still run. */
    public List<Long> children() {
        return process.descendants().map(ProcessHandle::pid).toList();
    }

    /** Stops the server by SIGTERM, and returns how long that took. Blocks. */
    public Duration stop() {
        long start = System.nanoTime();
        close();
        return Duration.ofNanos(System.nanoTime() - start);
    }

    public Jvm jvm() throws IOException {
        return Jvm.of(process.toHandle());
    }

    /** Returns the URL of a model's inference over HTTP. */
    public String inferUrl(String model) {
        return "http://" + Loopback.ADDRESS + ":" + httpPort + inferPath(model);
    }

    /** Returns the URL of a model's inference over encrypted HTTP. */
    public String encryptedInferUrl(String model) {
        return inferUrl(model).replace("http:", "https:");
    }

    /** Returns the path of a model's inference over HTTP. */
    public static String inferPath(String model) {
        return "/v2/models/" + model + "/infer";
    }

    /** Returns where the server listens for gRPC. */
    public int grpcPort() {
        return grpcPort;
    }

    @Override
    public void close() {
        bench.children().end(process);
    }

    /** Returns how long ago the process was started. */
    public Duration age() {
        return Duration.ofNanos(System.nanoTime() - startNanos);
    }

    private String lastLines() throws IOException {
        List<String> lines = Files.readAllLines(log);
        return String.join("\n", lines.subList(Math.max(0, lines.size() - LINES_OF_LOG), lines.size()));
    }
}
