package dev.nereid.attacks;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.distribution.testing.InstalledServer;
import java.io.IOException;
import java.io.RandomAccessFile;
import java.io.UncheckedIOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Stream;

/**
 * A process of the installed server, with a small heap. The heap has 512 MB and the tensor memory limit is 512 MB.
 * Where the machine allows a control group, the process runs in one with 300 MB more. Its log is written to a file.
 * Safe for use by any thread, except start and close.
 */
final class VictimServer implements AutoCloseable {
    static final long HEAP = 512L << 20;
    static final long TENSORS = 512L << 20;

    /** How much of the machine's memory the process may have. */
    static final long MAX_RESIDENT = HEAP + TENSORS + (300L << 20);

    /** As many as the machine allows, up to this. */
    static final int DESCRIPTORS = 40_000;

    private static final String JAVA_OPTIONS = " -Xmx" + (HEAP >> 20) + "m";

    private static final Duration START_TIMEOUT = Duration.ofSeconds(60);
    private static final Duration STOP_TIMEOUT = Duration.ofSeconds(60);
    private static final boolean OLDER_BUILD = Boolean.getBoolean("attacks.older-build");

    private final Process process;
    private final Path log;
    private final String report;
    private final Optional<ControlGroup> group;

    private VictimServer(Process process, Path log, String report, Optional<ControlGroup> group) {
        this.process = process;
        this.log = log;
        this.report = report;
        this.group = group;
    }

    /** Starts a server that may have as many descriptors as it likes. */
    static VictimServer start(Path directory, String... flags) throws IOException {
        return start(directory, DESCRIPTORS, flags);
    }

    /** Starts a server on free ports, with models and a log in a directory, and waits until it listens. */
    static VictimServer start(Path directory, int descriptors, String... flags) throws IOException {
        return start(directory, descriptors, JAVA_OPTIONS, flags);
    }

    /**
     * Starts a server with a heap of full size from the start, so that its growth is other memory, and with a log of
     * leaked transport buffers.
     */
    static VictimServer startToBeMeasured(Path directory, String... flags) throws IOException {
        String options = JAVA_OPTIONS + JAVA_OPTIONS.replace("mx", "ms")
                + " -XX:+AlwaysPreTouch -Dio.netty.leakDetection.level=paranoid";
        return start(directory, DESCRIPTORS, options, flags);
    }

    private static VictimServer start(Path directory, int descriptors, String javaOptions, String... flags)
            throws IOException {
        Path models = directory.resolve("models");
        if (!Files.exists(models)) {
            Models.write(models);
        }
        Optional<ControlGroup> group = ControlGroup.make(MAX_RESIDENT);
        Path log = Files.createTempFile(directory, "log", ".txt");
        Path out = Files.createTempFile(directory, "out", ".txt");
        ProcessBuilder builder = new ProcessBuilder(command(models, descriptors, group, flags))
                .redirectError(log.toFile())
                .redirectOutput(out.toFile());
        builder.environment().put("NEREID_JAVA_OPTIONS", javaOptions);
        Process process = builder.start();
        // Does not outlive a JVM of tests that was ended.
        Runtime.getRuntime().addShutdownHook(new Thread(process::destroyForcibly));
        process.getOutputStream().close();
        Await.holds(START_TIMEOUT, () -> !process.isAlive() || text(out).contains("Serving "));
        if (!process.isAlive() || !text(out).contains("Serving ")) {
            process.destroyForcibly();
            throw new AssertionError("server not started: " + text(out) + text(log));
        }
        return new VictimServer(process, log, text(out), group);
    }

    private static List<String> command(Path models, int descriptors, Optional<ControlGroup> group, String... flags)
            throws IOException {
        List<String> all = new ArrayList<>();
        all.add("--backend-directory=" + InstalledServer.CHECKOUT.resolve("examples/plugins"));
        all.add("--tensor-memory-pool-byte-size=" + TENSORS);
        all.addAll(List.of(flags));
        List<String> command = new ArrayList<>(List.of(
                "sh",
                "-c",
                // As many descriptors as allowed, if these are too many.
                "ulimit -n \"$1\" 2>/dev/null || ulimit -n \"$(ulimit -Hn)\"; echo $$ >\"$2\"; shift 2; exec \"$@\"",
                "sh",
                Integer.toString(descriptors),
                group.map(made -> made.entrance().toString()).orElse("/dev/null"),
                InstalledServer.HOME.resolve("bin/nereid").toString(),
                "serve",
                "--model-repository=" + models,
                "--http-port=0",
                "--grpc-port=0",
                "--metrics-port=0"));
        Predicate<String> supported = OLDER_BUILD ? supportedFlags() : _ -> true;
        all.stream().filter(supported).forEach(command::add);
        return command;
    }

    private static Predicate<String> supportedFlags() throws IOException {
        Process help = new ProcessBuilder(
                        InstalledServer.HOME.resolve("bin/nereid").toString(), "serve", "--help")
                .redirectError(ProcessBuilder.Redirect.DISCARD)
                .start();
        String text = new String(help.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        return flag -> text.contains(flag.substring(0, flag.indexOf('=') + 1));
    }

    InetSocketAddress http() {
        return address("HTTP");
    }

    InetSocketAddress grpc() {
        return address("gRPC");
    }

    InetSocketAddress metrics() {
        return address("metrics");
    }

    private InetSocketAddress address(String port) {
        Matcher line = Pattern.compile("(?m)^" + port + " +(\\S+)$").matcher(report);
        assertThat(line.find()).as(report).isTrue();
        String text = line.group(1);
        URI uri = URI.create(text.contains("://") ? text : "grpc://" + text);
        return new InetSocketAddress(uri.getHost(), uri.getPort());
    }

    long pid() {
        return process.pid();
    }

    boolean isAlive() {
        return process.isAlive();
    }

    boolean isInControlGroup() {
        return group.isPresent();
    }

    /** Returns the sum of the samples of a metric, of all labels that contain a text. */
    double metric(String name, String labels) throws IOException {
        try (RawHttp connection = RawHttp.connect(metrics())) {
            String page = connection.exchange(RawHttp.get("/metrics")).text();
            return page.lines()
                    .filter(line -> line.startsWith(name + "{") || line.startsWith(name + " "))
                    .filter(line -> line.contains(labels))
                    .mapToDouble(line -> Double.parseDouble(line.substring(line.lastIndexOf(' ') + 1)))
                    .sum();
        }
    }

    /** Returns the tensor memory in use, in bytes. */
    long tensorBytes() {
        try {
            return (long) metric("nereid_tensor_memory_used_bytes", "");
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns the reachable heap, in bytes. */
    long reachableHeapBytes() throws IOException {
        String jcmd = Path.of(System.getProperty("java.home"), "bin", "jcmd").toString();
        Process collection = new ProcessBuilder(jcmd, Long.toString(process.pid()), "GC.run")
                .redirectErrorStream(true)
                .redirectOutput(ProcessBuilder.Redirect.DISCARD)
                .start();
        try {
            if (!collection.waitFor(20, TimeUnit.SECONDS)) {
                collection.destroyForcibly();
                throw new AssertionError("heap not collected within 20 s");
            }
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            throw new AssertionError("interrupted", e);
        }
        return (long) metric("jvm_memory_used_bytes", "area=\"heap\"");
    }

    /** Returns the resident memory of the process, in bytes; 0 where it is not available. */
    long residentBytes() {
        return statusKilobytes("VmRSS:") << 10;
    }

    /** Returns the peak resident memory since {@link #forgetPeak}. */
    long peakResidentBytes() {
        return statusKilobytes("VmHWM:") << 10;
    }

    /** Resets the peak resident size, where the system allows it. */
    void forgetPeak() {
        try {
            Files.writeString(file("clear_refs"), "5");
        } catch (IOException e) {
            // the peak is then that since the start
        }
    }

    long threads() {
        return statusKilobytes("Threads:");
    }

    /** Returns how many processor seconds it has used. */
    double processorSeconds() {
        return process.info().totalCpuDuration().map(Duration::toMillis).orElse(0L) / 1e3;
    }

    /** Returns how many descriptors are open. */
    long descriptors() {
        try (Stream<Path> all = Files.list(file("fd"))) {
            return all.count();
        } catch (IOException e) {
            return 0;
        }
    }

    long logBytes() {
        return log.toFile().length();
    }

    /** Returns the end of the log, at most a megabyte. */
    String log() {
        try (RandomAccessFile file = new RandomAccessFile(log.toFile(), "r")) {
            file.seek(Math.max(0, file.length() - (1 << 20)));
            byte[] end = new byte[(int) (file.length() - file.getFilePointer())];
            file.readFully(end);
            return new String(end, StandardCharsets.UTF_8);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    /** Returns the last characters of the log. */
    String logEnd(int length) {
        String log = log();
        return log.substring(Math.max(0, log.length() - length));
    }

    /** Stops the server, as Kubernetes does. */
    void terminate() {
        process.destroy();
    }

    /** Waits for its end, and returns its exit status. */
    int awaitEnd(Duration atMost) throws InterruptedException {
        if (!process.waitFor(atMost.toMillis(), TimeUnit.MILLISECONDS)) {
            throw new AssertionError("still running after " + atMost.toSeconds() + " s: " + log());
        }
        return process.exitValue();
    }

    @Override
    public void close() {
        process.destroyForcibly();
        try {
            awaitEnd(STOP_TIMEOUT);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
        group.ifPresent(ControlGroup::close);
    }

    private Path file(String name) {
        return Path.of("/proc", Long.toString(process.pid()), name);
    }

    private long statusKilobytes(String name) {
        try (Stream<String> lines = Files.lines(file("status"))) {
            return lines.filter(line -> line.startsWith(name))
                    .mapToLong(line -> Long.parseLong(line.replaceAll("\\D", "")))
                    .sum();
        } catch (IOException | UncheckedIOException e) {
            return 0; // it has ended, or this is no Linux
        }
    }

    private static String text(Path file) {
        try {
            return Files.readString(file);
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }
}
