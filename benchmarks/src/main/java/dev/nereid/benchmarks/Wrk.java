package dev.nereid.benchmarks;

import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;

/** An address asked over HTTP by wrk, which is a process of its own. Immutable; used by the thread that measures. */
final class Wrk implements Contender {
    private static final String COMMAND = "wrk";
    private static final String SCRIPT = "post.lua";
    private static final String VARIED = "varied.lua";
    private static final String MINUTE = "minute.lua";

    /** An answer that takes longer than this counts as none. */
    private static final String TIMEOUT = "30s";

    private final String name;
    private final Bench bench;
    private final List<String> flags;
    private final List<String> arguments;

    private Wrk(String name, Bench bench, List<String> flags, List<String> arguments) {
        this.name = name;
        this.bench = bench;
        this.flags = flags;
        this.arguments = arguments;
    }

    /**
     * Prepares a load.
     *
     * @param name what is asked, as the table names it
     * @param bench where files are put and processes are started
     * @param connections how many connections ask, each one request after the other
     * @param body what is posted
     * @param url where to
     * @return the load
     */
    static Wrk on(String name, Bench bench, int connections, InferBody body, String url) throws IOException {
        return on(name, bench, connections, body.http(), body.headLength(), url);
    }

    /**
     * Prepares a load of JSON.
     *
     * @param name what is asked, as the table names it
     * @param bench where files are put and processes are started
     * @param connections how many connections ask, each one request after the other
     * @param json what is posted
     * @param url where to
     * @return the load
     */
    static Wrk json(String name, Bench bench, int connections, String json, String url) throws IOException {
        return on(name, bench, connections, json.getBytes(StandardCharsets.UTF_8), 0, url);
    }

    /**
     * Prepares a load of requests that differ.
     *
     * @param name what is asked, as the table names it
     * @param bench where files are put and processes are started
     * @param connections how many connections ask, each one request after the other
     * @param bodies what is posted, in turn
     * @param url where to
     * @return the load
     */
    static Wrk varied(String name, Bench bench, int connections, VariedBodies bodies, String url) throws IOException {
        Path posted = bench.workspace().write("bodies-" + bodies.bodies().size(), bodies.http());
        List<String> arguments = new ArrayList<>(List.of(url, "--", posted.toString()));
        arguments.addAll(bodies.arguments());
        return new Wrk(name, bench, flags(bench, connections, VARIED), arguments);
    }

    /**
     * Puts the address of a server that was just started under load. Blocks.
     *
     * @param bench where files are put and processes are started
     * @param connections how many connections ask, each one request after the other
     * @param body what is posted
     * @param url where to
     * @param age how long ago the server's process was started
     * @param time how long
     * @return the requests in each moment since the start of the process
     */
    static FirstMinute firstMinute(
            Bench bench, int connections, InferBody body, String url, Duration age, Duration time)
            throws IOException, InterruptedException {
        Path posted = bench.workspace().write("body-minute", body.http());
        double started = (System.currentTimeMillis() - age.toMillis()) / 1e3;
        long tenths = age.plus(time).toMillis() / 100;
        Wrk wrk = new Wrk(
                "first minute",
                bench,
                flags(bench, connections, MINUTE),
                List.of(
                        url,
                        "--",
                        posted.toString(),
                        "" + body.headLength(),
                        String.format(Locale.ROOT, "%.3f", started),
                        "" + tenths));
        String output = wrk.output(time);
        WrkOutcome.in(output).sample(wrk.name); // throws if a request was not answered well
        return FirstMinute.in(output);
    }

    private static Wrk on(String name, Bench bench, int connections, byte[] content, int headLength, String url)
            throws IOException {
        Path posted = bench.workspace().write("body-" + content.length, content);
        return new Wrk(
                name, bench, flags(bench, connections, SCRIPT), List.of(url, "--", posted.toString(), "" + headLength));
    }

    private static List<String> flags(Bench bench, int connections, String script) throws IOException {
        int threads = Math.min(connections, bench.options().eventLoops());
        Path copy = bench.workspace().copyOf(Wrk.class, script);
        return List.of("-t", "" + threads, "-c", "" + connections, "--timeout", TIMEOUT, "-s", copy.toString());
    }

    /** Throws if there is no wrk. */
    static void require(Children children) throws IOException, InterruptedException {
        try {
            children.start(new ProcessBuilder(COMMAND, "-v")
                            .redirectErrorStream(true)
                            .redirectOutput(ProcessBuilder.Redirect.DISCARD))
                    .waitFor();
        } catch (IOException e) {
            throw new IOException("wrk: not found (expected: on the PATH; Debian: apt-get install wrk)", e);
        }
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Sample load(Duration time) throws IOException, InterruptedException {
        return WrkOutcome.in(output(time)).sample(name);
    }

    /** Puts the address under load for a while, and returns what wrk printed. Blocks. */
    private String output(Duration time) throws IOException, InterruptedException {
        List<String> command = new ArrayList<>(List.of(COMMAND, "-d", time.toSeconds() + "s"));
        command.addAll(flags);
        command.addAll(arguments);
        Process process = bench.children().start(new ProcessBuilder(command).redirectErrorStream(true));
        try {
            String output = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
            if (process.waitFor() != 0) {
                throw new IOException("wrk failed: " + output.strip());
            }
            return output;
        } finally {
            bench.children().end(process);
        }
    }
}
