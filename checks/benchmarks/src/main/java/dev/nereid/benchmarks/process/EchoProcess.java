package dev.nereid.benchmarks.process;

import dev.nereid.benchmarks.load.Loopback;
import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;

/** A ceiling as a child process, which exits at the end of its standard input. Owned by the measuring thread. */
public final class EchoProcess implements AutoCloseable {
    private final BenchmarkRun bench;
    private final Process process;
    private final int port;

    private EchoProcess(BenchmarkRun bench, Process process, int port) {
        this.bench = bench;
        this.process = process;
        this.port = port;
    }

    /** Starts a ceiling of a kind of {@link EchoMain}, to be closed by the caller. Blocks until it listens. */
    public static EchoProcess start(BenchmarkRun bench, Jvm jvm, String kind) throws IOException {
        List<String> command = new ArrayList<>(List.of(jvm.command()));
        command.addAll(jvm.options());
        command.addAll(List.of("--enable-native-access=ALL-UNNAMED", "-cp", bench.classPath()));
        command.addAll(
                List.of(EchoMain.class.getName(), kind, "" + bench.options().eventLoops()));
        Process process =
                bench.children().start(new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT));
        // Left open: the process writes nothing else, and ends with the other pipe.
        BufferedReader reader =
                new BufferedReader(new InputStreamReader(process.getInputStream(), StandardCharsets.US_ASCII));
        String line = reader.readLine();
        if (line == null) {
            bench.children().end(process);
            throw new IOException(kind + ": ended before it listened");
        }
        return new EchoProcess(bench, process, Integer.parseInt(line));
    }

    public int port() {
        return port;
    }

    /** Returns an address over HTTP. */
    public String url(String path) {
        return "http://" + Loopback.ADDRESS + ":" + port + path;
    }

    @Override
    public void close() {
        bench.children().end(process);
    }
}
