package dev.nereid.benchmarks.section;

import static java.util.stream.Collectors.toMap;

import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.benchmarks.load.BatchSizes;
import dev.nereid.benchmarks.load.EmbeddedLane;
import dev.nereid.benchmarks.load.EmbeddedLoad;
import dev.nereid.benchmarks.load.GrpcStatistics;
import dev.nereid.benchmarks.load.HttpResponseCheck;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.WaitingLoad;
import dev.nereid.benchmarks.load.Wrk;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.CeilingComparison;
import dev.nereid.benchmarks.run.CeilingComparison.Ceiling;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/** Measures ensembles of three steps beside one model alone, in process and over HTTP. */
final class EnsembleSection {
    private static final Goal COST = new Goal.LatencyOfSteps(EnsembleModels.STEPS, Duration.ofNanos(15_000));
    private static final Goal THROUGHPUT = new Goal.RateOfGroups(EnsembleModels.STEPS, 0.5);
    private static final Goal TRANSFER = new Goal.RateOfGroups(EnsembleModels.STEPS, 2);
    private static final double MIN_BATCH = 4;
    private static final int IN_FLIGHT = 64;

    private static final InferBody SMALL = InferBody.of("INPUT0", 1L, 16L);
    private static final InferBody MEGABYTE = InferBody.of("INPUT0", 1L, 250_000L);

    private static final EnsembleModels PLAIN = new EnsembleModels("plain");
    private static final EnsembleModels BATCHED = new EnsembleModels("batched");
    private static final EnsembleModels BUSY = new EnsembleModels("busy");
    private static final EnsembleModels PATIENT = new EnsembleModels("patient");

    private EnsembleSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = CeilingComparison.table("Ensembles of three steps that return their input, beside one model");
        Path repository = bench.workspace().path("models-ensembles");
        PLAIN.write(repository, "");
        BATCHED.write(repository, "dynamic_batching { }");
        BUSY.write(repository, sleep(2) + "dynamic_batching { }");
        PATIENT.write(repository, sleep(2) + "dynamic_batching { max_queue_delay_microseconds: 1000 }");
        try (NereidServer server = NereidServer.start(
                ServerOptions.of(repository).withPlugins(bench.checkout().resolve("examples/plugins")))) {
            oneAtATime(bench, server, table);
            inFlight(bench, server, table);
        }
        try (NereidProcess server = NereidProcess.start(bench, Launch.withExamples(bench, repository))) {
            megabyte(bench, server, 1, table);
            megabyte(bench, server, 8, table);
            batches(bench, server, table);
        }
        return table;
    }

    private static String sleep(int millis) {
        return "parameters { key: \"execute_delay_ms\" value: { string_value: \"" + millis + "\" } }\n";
    }

    private static void oneAtATime(BenchmarkRun bench, NereidServer server, Table table)
            throws IOException, InterruptedException {
        for (boolean onInstanceThreads : List.of(false, true)) {
            String name =
                    "in process, one at a time, " + (onInstanceThreads ? "on instance threads" : "executed directly");
            try (WaitingLoad ensemble = new WaitingLoad(name, server, PLAIN.name(), SMALL, 1, onInstanceThreads);
                    WaitingLoad alone =
                            new WaitingLoad("one model", server, PLAIN.alone(), SMALL, 1, onInstanceThreads)) {
                bench.run(new CeilingComparison(ensemble, List.of(new Ceiling(alone, COST))), table);
            }
        }
    }

    private static void inFlight(BenchmarkRun bench, NereidServer server, Table table)
            throws IOException, InterruptedException {
        inFlight(bench, server, BATCHED, "executed directly", false, table);
        inFlight(bench, server, BATCHED, "on instance threads", true, table);
        inFlight(bench, server, BUSY, "2 ms", true, table);
    }

    private static void inFlight(
            BenchmarkRun bench,
            NereidServer server,
            EnsembleModels models,
            String how,
            boolean onInstanceThreads,
            Table table)
            throws IOException, InterruptedException {
        try (EmbeddedLoad ensemble = embedded(
                        "in process x " + IN_FLIGHT + ", batched, " + how, server, models.name(), onInstanceThreads);
                EmbeddedLoad alone = embedded("one model", server, models.alone(), onInstanceThreads)) {
            BatchSizes batches = new BatchSizes(ensemble, models.steps(), model -> executions(server, model));
            BatchSizes batch = new BatchSizes(alone, List.of(models.alone()), model -> executions(server, model));
            bench.run(new CeilingComparison(batches, List.of(new Ceiling(batch, THROUGHPUT))), table);
            table.add("  mean batches: " + batches.text() + "; of one model: " + batch.text(), "", "", "", "", "", "");
        }
    }

    private static EmbeddedLoad embedded(String name, NereidServer server, String model, boolean onInstanceThreads) {
        return new EmbeddedLoad(name, server, model, SMALL, IN_FLIGHT, EmbeddedLane.Ending.RESPONSE, onInstanceThreads);
    }

    private static Map<Long, Long> executions(NereidServer server, String model) {
        return server.models().statistics(ModelRef.latest(model)).getFirst().executions().batches().stream()
                .collect(toMap(
                        BatchStatistics::batchSize,
                        batch -> batch.compute().infer().count()));
    }

    private static void megabyte(BenchmarkRun bench, NereidProcess server, int connections, Table table)
            throws IOException, InterruptedException {
        for (String model : List.of(PLAIN.name(), PLAIN.alone())) {
            HttpResponseCheck.check(server.inferUrl(model), MEGABYTE, MEGABYTE.tensor());
        }
        bench.run(
                new CeilingComparison(
                        Wrk.on(
                                "HTTP, 1 MB x " + connections,
                                bench,
                                connections,
                                MEGABYTE,
                                server.inferUrl(PLAIN.name())),
                        List.of(new Ceiling(
                                Wrk.on("one call", bench, connections, MEGABYTE, server.inferUrl(PLAIN.alone())),
                                TRANSFER))),
                table);
    }

    private static void batches(BenchmarkRun bench, NereidProcess server, Table table)
            throws IOException, InterruptedException {
        try (GrpcStatistics statistics = GrpcStatistics.connect(server.grpcPort())) {
            batches(bench, server, statistics, BUSY, "2 ms", table);
            batches(bench, server, statistics, PATIENT, "2 ms, queue delay of 1 ms", table);
        }
    }

    private static void batches(
            BenchmarkRun bench,
            NereidProcess server,
            GrpcStatistics statistics,
            EnsembleModels models,
            String how,
            Table table)
            throws IOException, InterruptedException {
        BatchSizes load = new BatchSizes(
                Wrk.on("HTTP x " + IN_FLIGHT + ", " + how, bench, IN_FLIGHT, SMALL, server.inferUrl(models.name())),
                models.steps(),
                statistics::executions);
        bench.run(new CeilingComparison(load, List.of()), table);
        table.add(
                "  mean batches of " + EnsembleModels.MAX_BATCH + ": " + load.text(),
                "",
                "",
                "",
                String.format(Locale.ROOT, "%.1f", load.smallest()),
                String.format(Locale.ROOT, ">= %.1f", MIN_BATCH),
                Figures.verdict(load.smallest() >= MIN_BATCH));
    }
}
