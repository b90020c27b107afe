package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.ClientEventLoops;
import dev.nereid.benchmarks.load.GrpcLoad;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.micro.Microbenchmark;
import dev.nereid.benchmarks.micro.SchedulerBenchmark;
import dev.nereid.benchmarks.micro.SequenceBenchmark;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.Pace;
import dev.nereid.spi.SequenceBatching;
import java.io.IOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.util.Statistics;

/** Measures requests of sequences beside the same requests without, and what sequences cost that wait. */
final class SequenceSection {
    private static final double MAX_COST = 2;
    private static final double MIN_SHARE = 0.7;
    private static final double MAX_BYTES = 1024;
    private static final double MAX_IDLE_PERCENT = 1;
    private static final int MEDIAN = 50;
    private static final int STREAMS = 64;

    private static final String STATELESS = "stateless";
    private static final String STATEFUL = "stateful";
    private static final String TENSORS = """
            backend: "identity"
            max_batch_size: 64
            input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
            output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ -1 ] } ]
            """;
    private static final InferBody BODY = InferBody.of("INPUT0", 1L, 256L);

    private SequenceSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = new Table(
                "Sequences beside the dynamic batcher", "WHAT", "STATEFUL", "STATELESS", "RATIO", "TARGET", "");
        inProcess(bench, table);
        streams(bench, table);
        bench.progress().accept("sequences that wait");
        waiting(table);
        return table;
    }

    private static void inProcess(BenchmarkRun bench, Table table) throws IOException {
        double stateless = run(bench, SchedulerBenchmark.class, "batched").getMean();
        double statelessTime =
                run(bench, SchedulerBenchmark.class, "synchronous").getPercentile(MEDIAN);
        for (SequenceBatching.Strategy strategy : SequenceBatching.Strategy.values()) {
            inProcess(bench, table, strategy, stateless, statelessTime);
        }
    }

    private static void inProcess(
            BenchmarkRun bench, Table table, SequenceBatching.Strategy strategy, double stateless, double statelessTime)
            throws IOException {
        String name = strategy.name().toLowerCase(Locale.ROOT);
        double stateful = run(bench, strategy, "batched").getMean();
        table.add(
                name + ", in process, " + SchedulerBenchmark.SUBMITTERS + " threads, " + SchedulerBenchmark.WINDOW
                        + " in flight each",
                Figures.rate(stateful),
                Figures.rate(stateless),
                Figures.ratio(stateful / stateless),
                ">= " + Figures.ratio(1 / MAX_COST),
                Figures.verdict(stateful * MAX_COST >= stateless));
        double statefulTime = run(bench, strategy, "synchronous").getPercentile(MEDIAN);
        table.add(
                name + ", in process, one at a time, p50",
                micros(statefulTime),
                micros(statelessTime),
                Figures.ratio(statefulTime / statelessTime),
                "<= " + Figures.ratio(MAX_COST),
                Figures.verdict(statefulTime <= MAX_COST * statelessTime));
    }

    private static Statistics run(BenchmarkRun bench, SequenceBatching.Strategy strategy, String method)
            throws IOException {
        return run(bench, new Microbenchmark(SequenceBenchmark.class, method, Map.of("strategy", strategy.name())));
    }

    private static Statistics run(BenchmarkRun bench, Class<?> type, String method) throws IOException {
        return run(bench, Microbenchmark.of(type, method));
    }

    private static Statistics run(BenchmarkRun bench, Microbenchmark benchmark) throws IOException {
        bench.progress()
                .accept(benchmark.type().getSimpleName() + "." + benchmark.method() + " "
                        + benchmark.parameters().getOrDefault("strategy", ""));
        return benchmark.run(bench.options().pace()).getPrimaryResult().getStatistics();
    }

    private static void streams(BenchmarkRun bench, Table table) throws IOException, InterruptedException {
        bench.progress().accept(STREAMS + " streams");
        Path repository = bench.workspace().path("models-sequences");
        ModelRepositories.write(repository, STATELESS, TENSORS + "dynamic_batching { }");
        ModelRepositories.write(repository, STATEFUL, TENSORS + """
                sequence_batching {
                  oldest { max_candidate_sequences: 128 }
                  control_input [
                    { name: "START" control [ { kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] } ] },
                    { name: "READY" control [ { kind: CONTROL_SEQUENCE_READY int32_false_true: [ 0, 1 ] } ] }
                  ]
                }
                """);
        try (NereidProcess server = NereidProcess.start(bench, Launch.withExamples(bench, repository));
                ClientEventLoops loops = ClientEventLoops.start(bench.options().eventLoops());
                GrpcLoad stateful = GrpcLoad.ofSequences(loops, server.grpcPort(), BODY.grpc(STATEFUL), STREAMS);
                GrpcLoad stateless =
                        GrpcLoad.ofStreamedRequests(loops, server.grpcPort(), BODY.grpc(STATELESS), STREAMS)) {
            Pace pace = bench.options().pace();
            stateful.load(pace.warmUp());
            stateless.load(pace.warmUp());
            Goal goal = new Goal.RateAtLeast(MIN_SHARE);
            List<Double> statefulRates = new ArrayList<>();
            List<Double> statelessRates = new ArrayList<>();
            List<Double> ratios = new ArrayList<>();
            for (int i = 0; i < pace.rounds(); i++) {
                Sample first = stateful.load(pace.measured());
                Sample second = stateless.load(pace.measured());
                statefulRates.add(first.perSecond());
                statelessRates.add(second.perSecond());
                ratios.add(goal.compare(first, second));
            }
            double ratio = Figures.median(ratios);
            table.add(
                    "oldest, gRPC, " + STREAMS + " streams, identity, 1 KB",
                    Figures.rate(Figures.median(statefulRates)),
                    Figures.rate(Figures.median(statelessRates)),
                    goal.show(ratio),
                    goal.target(),
                    goal.verdict(ratio));
        }
    }

    private static void waiting(Table table) throws InterruptedException {
        WaitingSequences.Idle idle = WaitingSequences.idle();
        String count = String.format(Locale.ROOT, "%,d", WaitingSequences.COUNT);
        addBytes(table, count + " idle: heap of each", idle.heapBytes());
        table.add("  other memory of each, the id as a control input", bytes(idle.otherBytes()), "", "", "", "");
        table.add(
                "  use of a processor",
                String.format(Locale.ROOT, "%.2f %%", idle.processorPercent()),
                "",
                "",
                String.format(Locale.ROOT, "<= %.0f %%", MAX_IDLE_PERCENT),
                Figures.verdict(idle.processorPercent() <= MAX_IDLE_PERCENT));
        addBytes(
                table,
                count + " in the backlog: heap of each, beyond that of a queued request",
                WaitingSequences.backlogBytes());
    }

    private static void addBytes(Table table, String what, double each) {
        table.add(what, bytes(each), "", "", "<= " + bytes(MAX_BYTES), Figures.verdict(each <= MAX_BYTES));
    }

    private static String bytes(double bytes) {
        return String.format(Locale.ROOT, "%.0f B", bytes);
    }

    private static String micros(double seconds) {
        return String.format(Locale.ROOT, "%.2f us", seconds * TimeUnit.SECONDS.toMicros(1));
    }
}
