package dev.nereid.distribution.testing;

import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.Executor;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * A process of the installed server, as a user starts it. Confined to one test; ended by its close. For other modules
 * too.
 */
public final class InstalledServer implements AutoCloseable {
    public static final Path HOME = Path.of(System.getProperty("nereid.home")).toAbsolutePath();
    public static final Path CHECKOUT =
            Path.of(System.getProperty("nereid.checkout")).toAbsolutePath().normalize();
    public static final Path MODELS = HOME.resolve("examples/models");

    /** The common pool may be a single thread, which a blocking read would occupy. */
    public static final Executor BLOCKING = Thread::startVirtualThread;

    /** Long, since other builds may run on the same machine. */
    private static final long TIMEOUT_SECONDS = 120;

    private static final List<String> FREE_PORTS = List.of("--http-port=0", "--grpc-port=0", "--metrics-port=0");

    private final Process process;
    private final List<String> out = new ArrayList<>();
    private final CompletableFuture<String> err;
    private final ByteArrayOutputStream errors = new ByteArrayOutputStream();

    private InstalledServer(Process process) {
        this.process = process;
        err = CompletableFuture.supplyAsync(this::readErrors, BLOCKING);
    }

    private String readErrors() {
        try (InputStream stream = process.getErrorStream()) {
            stream.transferTo(errors);
            return errSoFar();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns the server's standard error output. */
    public String errSoFar() {
        return errors.toString(StandardCharsets.UTF_8);
    }

    /**
     * Waits until the standard error output, which another thread reads, contains texts. Fails with the output.
     *
     * @return the output so far
     */
    public String awaitErr(String... texts) {
        try {
            Eventually.holds("log", TIMEOUT_SECONDS, () -> Arrays.stream(texts).allMatch(errSoFar()::contains));
        } catch (AssertionError e) {
            throw new AssertionError("log without one of " + Arrays.toString(texts) + ":\n" + errSoFar(), e);
        }
        return errSoFar();
    }

    /** Starts a server on free ports and waits until it listens. */
    public static InstalledServer serve(Path models, String... flags) throws IOException {
        return serve(Map.of(), models, flags);
    }

    /** Starts a server with variables of its environment on free ports and waits until it listens. */
    public static InstalledServer serve(Map<String, String> environment, Path models, String... flags)
            throws IOException {
        return serve(environment, models.toString(), flags);
    }

    /** Starts a server with a repository that may be remote on free ports and waits until it listens. */
    public static InstalledServer serve(Map<String, String> environment, String repository, String... flags)
            throws IOException {
        InstalledServer server = begin(environment, repository, flags);
        server.awaitReport();
        return server;
    }

    /** Starts a server with a repository that may be remote on free ports, without a wait. */
    public static InstalledServer begin(Map<String, String> environment, String repository, String... flags)
            throws IOException {
        List<String> arguments = new ArrayList<>(List.of("serve", "--model-repository=" + repository));
        arguments.addAll(FREE_PORTS);
        arguments.addAll(List.of(flags));
        return new InstalledServer(launch(environment, arguments));
    }

    /** Starts a server that ignores SIGINT and SIGHUP from its start, as shells and {@code nohup} have it. */
    public static InstalledServer serveInBackground(Path models) throws IOException {
        List<String> command = new ArrayList<>(List.of(
                "sh",
                "-c",
                "trap '' INT HUP; exec \"$0\" \"$@\"",
                HOME.resolve("bin/nereid").toString(),
                "serve",
                "--model-repository=" + models));
        command.addAll(FREE_PORTS);
        return started(start(Map.of(), command));
    }

    private static InstalledServer started(Process process) throws IOException {
        InstalledServer server = new InstalledServer(process);
        server.awaitReport();
        return server;
    }

    /** Runs a command to its end. */
    public static Result run(String... arguments) throws IOException, InterruptedException {
        return run(Map.of(), arguments);
    }

    /** Runs a command to its end. */
    public static Result run(Map<String, String> environment, String... arguments)
            throws IOException, InterruptedException {
        Process process = launch(environment, List.of(arguments));
        CompletableFuture<String> err = CompletableFuture.supplyAsync(() -> text(process.getErrorStream()), BLOCKING);
        String out = text(process.getInputStream());
        await(process);
        return new Result(process.exitValue(), out, err.join());
    }

    /** Returns the server's standard output since its start. */
    public String out() {
        return String.join("\n", out);
    }

    /** Returns the address of a port, as the server printed it. */
    public String address(String port) {
        Matcher line = Pattern.compile("(?m)^" + port + " +(\\S+)$").matcher(out());
        if (!line.find()) {
            throw new AssertionError("no address of " + port + " in: " + out());
        }
        return line.group(1);
    }

    public HttpResponse<String> get(String path) throws IOException, InterruptedException {
        return send(HttpRequest.newBuilder(URI.create(address("HTTP") + path)).build());
    }

    public HttpResponse<String> post(String path, String body) throws IOException, InterruptedException {
        return send(HttpRequest.newBuilder(URI.create(address("HTTP") + path))
                .POST(HttpRequest.BodyPublishers.ofString(body))
                .build());
    }

    public HttpResponse<String> metrics(String method, String path) throws IOException, InterruptedException {
        URI metrics = URI.create(address("metrics"));
        return send(HttpRequest.newBuilder(metrics.resolve(path))
                .method(method, HttpRequest.BodyPublishers.noBody())
                .build());
    }

    public long pid() {
        return process.pid();
    }

    /** Stops the server, as Ctrl-C does. */
    public void interrupt() throws IOException, InterruptedException {
        signal("INT");
    }

    /** Sends the server a signal. */
    public void signal(String name) throws IOException, InterruptedException {
        new ProcessBuilder("kill", "-" + name, String.valueOf(process.pid()))
                .start()
                .waitFor();
    }

    /** Waits for the end of the server, and returns its exit status and output. */
    public Result awaitEnd() throws InterruptedException {
        await(process);
        return new Result(process.exitValue(), out(), err.join());
    }

    @Override
    public void close() {
        process.destroy();
        try {
            await(process);
        } catch (InterruptedException e) {
            process.destroyForcibly();
            Thread.currentThread().interrupt();
        }
    }

    private static Process launch(Map<String, String> environment, List<String> arguments) throws IOException {
        List<String> command =
                new ArrayList<>(List.of(HOME.resolve("bin/nereid").toString()));
        command.addAll(arguments);
        return start(environment, command);
    }

    private static Process start(Map<String, String> environment, List<String> command) throws IOException {
        ProcessBuilder builder = new ProcessBuilder(command);
        builder.environment().putAll(environment);
        Process process = builder.start();
        process.getOutputStream().close();
        return process;
    }

    private static HttpResponse<String> send(HttpRequest request) throws IOException, InterruptedException {
        try (HttpClient client = HttpClient.newHttpClient()) {
            return client.send(request, HttpResponse.BodyHandlers.ofString());
        }
    }

    private void awaitReport() throws IOException {
        BufferedReader reader = process.inputReader(StandardCharsets.UTF_8);
        for (String line = reader.readLine(); line != null; line = reader.readLine()) {
            out.add(line);
            if (line.startsWith("Serving ")) {
                return;
            }
        }
        throw new AssertionError("ended with " + process.onExit().join().exitValue() + ": " + out() + err.join());
    }

    private static void await(Process process) throws InterruptedException {
        if (!process.waitFor(TIMEOUT_SECONDS, TimeUnit.SECONDS)) {
            process.destroyForcibly();
            throw new AssertionError("still running after " + TIMEOUT_SECONDS + " s");
        }
    }

    private static String text(InputStream stream) {
        try (stream) {
            return new String(stream.readAllBytes(), StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /**
     * The result of a process.
     *
     * @param status its exit status
     * @param out its standard output
     * @param err its standard error
     */
    public record Result(int status, String out, String err) {}
}
