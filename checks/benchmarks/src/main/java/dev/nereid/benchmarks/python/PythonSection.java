package dev.nereid.benchmarks.python;

import dev.nereid.benchmarks.load.ClientEventLoops;
import dev.nereid.benchmarks.load.EmbeddedLane;
import dev.nereid.benchmarks.load.EmbeddedLoad;
import dev.nereid.benchmarks.load.GrpcLoad;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.WaitingLoad;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.CeilingComparison;
import dev.nereid.benchmarks.run.Pace;
import dev.nereid.benchmarks.run.SharedCeilingComparison;
import dev.nereid.benchmarks.run.SharedCeilingComparison.Subject;
import dev.nereid.benchmarks.run.Workload;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;

/** Measures Python models: in process beside an exchange of the same bytes, over gRPC beside Java, and without requests. */
public final class PythonSection {
    /** The server's part and Python's take longer to get their speed than other sections. */
    private static final Duration WARM_UP = Duration.ofSeconds(20);

    /** Each model starts a process. */
    static final Duration START_TIMEOUT = Duration.ofMinutes(5);

    private static final InferBody SMALL = InferBody.of("INPUT0", 1L, 256L);
    private static final InferBody LARGE = InferBody.of("INPUT0", 1L, 1L << 18);
    private static final int IN_FLIGHT = 8;

    private static final double MAX_CALL_MICROS = 100;
    private static final double MIN_RESPONSES = 20_000;

    private PythonSection() {}

    /** Measures. Blocks. */
    public static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = CeilingComparison.table("Python models, in process and over gRPC");
        Optional<Interpreter> found = Interpreter.find(bench);
        if (found.isEmpty()) {
            table.addFootnote("left out: neither /usr/bin/python3 nor python3 of the path has NumPy");
            return table;
        }
        Interpreter python = found.get();
        Pace pace = bench.options().pace().inTurns(WARM_UP);
        table.addFootnote(python.versions() + "; " + pace.warmUp().toSeconds() + " s of warm-up, " + pace.rounds()
                + " turns of " + pace.measured().toSeconds() + " s for each workload");
        inProcess(bench, python, pace, table);
        overGrpc(bench, python, pace, table);
        IdleModels.measure(bench, python, table);
        return table;
    }

    /** Returns the flag for the Python of the models. */
    static String backendSetting(Interpreter python) {
        return "--backend-config=python,executable=" + python.executable();
    }

    private static void inProcess(BenchmarkRun bench, Interpreter python, Pace pace, Table table)
            throws IOException, InterruptedException {
        Path repository = bench.workspace().path("models-python");
        PythonModels.write(repository);
        try (NereidServer server = NereidServer.start(ServerOptions.of(repository)
                .withPlugins(
                        bench.installed().resolve("plugins"), bench.checkout().resolve("examples/plugins"))
                .withBackendSetting("python", "executable", python.executable().toString()))) {
            check(server, PythonModels.IDENTITY);
            check(server, PythonModels.BATCHED);
            try (Echoes echo = Echoes.alone(bench, python, SMALL)) {
                small(bench, server, 1, 0.45, echo, pace, table);
            }
            try (Echoes echo = Echoes.together(bench, python, SMALL, IN_FLIGHT)) {
                small(bench, server, IN_FLIGHT, 0.3, echo, pace, table);
            }
            large(bench, python, server, pace, table);
            batches(bench, server, repository, pace, table);
            calls(bench, server, pace, table);
            streams(bench, server, pace, table);
        }
    }

    private static void check(NereidServer server, String model) throws IOException, InterruptedException {
        float[] values = {1, 2, 3};
        if (!Arrays.equals(EmbeddedCall.make(server, model, values).output(), values)) {
            throw new IOException(model + ": another tensor than was sent");
        }
    }

    /** Threads that wait for their responses, as the threads of the exchange do; and requests that are sent by callbacks. */
    private static void small(
            BenchmarkRun bench, NereidServer server, int inFlight, double share, Workload echo, Pace pace, Table table)
            throws IOException, InterruptedException {
        Goal goal = new Goal.RateAtLeast(share);
        String load = "1 KB x " + inFlight;
        String threads = load + (inFlight == 1 ? ", a thread waits" : ", threads wait");
        try (WaitingLoad waiting = waiting(threads, server, PythonModels.IDENTITY, SMALL, inFlight);
                WaitingLoad batched = waiting(threads + ", batched", server, PythonModels.BATCHED, SMALL, inFlight);
                EmbeddedLoad calledBack = callbacks(load + ", callbacks", server, PythonModels.IDENTITY, inFlight);
                EmbeddedLoad batchedCalledBack =
                        callbacks(load + ", callbacks, batched", server, PythonModels.BATCHED, inFlight)) {
            bench.run(
                    new SharedCeilingComparison(
                            List.of(
                                    new Subject(waiting, goal),
                                    new Subject(batched, goal),
                                    new Subject(calledBack, goal),
                                    new Subject(batchedCalledBack, goal)),
                            echo),
                    pace,
                    table);
        }
    }

    private static WaitingLoad waiting(String name, NereidServer server, String model, InferBody body, int threads) {
        return new WaitingLoad(name, server, model, body, threads, false);
    }

    private static EmbeddedLoad callbacks(String name, NereidServer server, String model, int inFlight) {
        return new EmbeddedLoad(name, server, model, SMALL, inFlight, EmbeddedLane.Ending.RESPONSE);
    }

    private static void large(BenchmarkRun bench, Interpreter python, NereidServer server, Pace pace, Table table)
            throws IOException, InterruptedException {
        try (Echoes memory = Echoes.inMemory(bench, python, LARGE);
                Echoes socket = Echoes.whole(bench, python, LARGE);
                WaitingLoad waiting = waiting("1 MB x 1, a thread waits", server, PythonModels.IDENTITY, LARGE, 1)) {
            bench.run(
                    new SharedCeilingComparison(
                            List.of(new Subject(waiting, new Goal.RateAtLeast(0.6)), new Subject(socket, Goal.none())),
                            memory),
                    pace,
                    table);
        }
    }

    private static void batches(BenchmarkRun bench, NereidServer server, Path repository, Pace pace, Table table)
            throws IOException, InterruptedException {
        bench.progress().accept("executions of 8 requests and of 1");
        try (EmbeddedLoad eights = callbacks("batches of 8", server, PythonModels.FULL, IN_FLIGHT);
                EmbeddedLoad ones = callbacks("one by one", server, PythonModels.IDENTITY, 1)) {
            new BatchCost(server, repository).measure(eights, ones, pace, table);
        }
    }

    private static void calls(BenchmarkRun bench, NereidServer server, Pace pace, Table table)
            throws IOException, InterruptedException {
        Sample sample = alone(bench, new ModelCallLoad("exec of a Java model, 1 KB, in a loop", server), pace);
        double micros = TimeUnit.SECONDS.toMicros(1) / sample.perSecond();
        table.add(
                "exec of a Java model, 1 KB, in a loop",
                Figures.rate(sample.perSecond()),
                Figures.latency(sample.p50Micros()),
                Figures.latency(sample.p99Micros()),
                String.format(Locale.ROOT, "%.0f us a call", micros),
                String.format(Locale.ROOT, "<= %.0f us", MAX_CALL_MICROS),
                Figures.verdict(micros <= MAX_CALL_MICROS));
    }

    private static void streams(BenchmarkRun bench, NereidServer server, Pace pace, Table table)
            throws IOException, InterruptedException {
        Sample sample = alone(bench, new StreamLoad("streamed responses of one process", server), pace);
        table.add(
                "streamed responses of one process",
                Figures.rate(sample.perSecond()),
                "",
                "",
                "",
                ">= " + Figures.rate(MIN_RESPONSES),
                Figures.verdict(sample.perSecond() >= MIN_RESPONSES));
    }

    /** Measures a workload that is compared with a fixed limit, and returns its median. */
    private static Sample alone(BenchmarkRun bench, Workload load, Pace pace) throws IOException, InterruptedException {
        bench.progress().accept(load.name());
        load.load(pace.warmUp());
        List<Sample> samples = new ArrayList<>();
        for (int round = 0; round < pace.rounds(); round++) {
            samples.add(load.load(pace.measured()));
        }
        return CeilingComparison.middle(samples);
    }

    private static void overGrpc(BenchmarkRun bench, Interpreter python, Pace pace, Table table)
            throws IOException, InterruptedException {
        Path repository = bench.workspace().path("models-python-grpc");
        PythonModels.identities(repository);
        try (NereidProcess server = NereidProcess.start(
                        bench, Launch.withExamples(bench, repository, backendSetting(python)), START_TIMEOUT);
                ClientEventLoops loops = ClientEventLoops.start(bench.options().eventLoops())) {
            overGrpc(bench, loops, server.grpcPort(), 1, 0.6, pace, table);
            overGrpc(bench, loops, server.grpcPort(), IN_FLIGHT, 0.4, pace, table);
        }
    }

    private static void overGrpc(
            BenchmarkRun bench, ClientEventLoops loops, int port, int inFlight, double share, Pace pace, Table table)
            throws IOException, InterruptedException {
        Goal goal = new Goal.RateAtLeast(share);
        String load = "gRPC, 1 KB x " + inFlight;
        try (GrpcLoad unbatched = connect(load, loops, port, PythonModels.IDENTITY, inFlight);
                GrpcLoad batched = connect(load + ", batched", loops, port, PythonModels.BATCHED, inFlight);
                GrpcLoad java = connect("identity in Java", loops, port, ModelRepositories.IDENTITY, inFlight)) {
            bench.run(
                    new SharedCeilingComparison(
                            List.of(new Subject(unbatched, goal), new Subject(batched, goal)), java),
                    pace,
                    table);
        }
    }

    private static GrpcLoad connect(String name, ClientEventLoops loops, int port, String model, int inFlight)
            throws IOException {
        return GrpcLoad.connect(name, loops, port, SMALL.grpc(model), inFlight);
    }
}
