package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.EmbeddedLane;
import dev.nereid.benchmarks.load.EmbeddedLoad;
import dev.nereid.benchmarks.load.Wrk;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.CeilingComparison;
import dev.nereid.benchmarks.run.CeilingComparison.Ceiling;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** Measures dynamic batching: a cheap model with {@code dynamic_batching { }} beside the same without. */
final class BatchingSection {
    private static final String BATCHED = "mlp_batched";
    private static final String ALONE = "mlp_alone";

    private BatchingSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = CeilingComparison.table(MlpSection.MODEL + ", dynamic_batching { } beside one by one");
        Optional<Path> file = ModelRepositories.shared(bench, MlpSection.MODEL);
        if (file.isEmpty()) {
            table.addFootnote("left out: ../shared/models/" + MlpSection.MODEL + ".onnx is not there");
            return table;
        }
        Path repository = bench.workspace().path("models-batching");
        ModelRepositories.onnx(repository, BATCHED, file.get(), MlpSection.BATCHED);
        ModelRepositories.onnx(repository, ALONE, file.get(), MlpSection.TENSORS);
        try (NereidProcess server = NereidProcess.start(bench, Launch.withExamples(bench, repository))) {
            http(bench, 1, new Goal.RateAtLeast(0.97), server, table);
            http(bench, 64, new Goal.RateAtLeast(1.3), server, table);
        }
        try (NereidServer server = NereidServer.start(
                ServerOptions.of(repository).withPlugins(bench.installed().resolve("plugins")))) {
            inProcess(bench, 1, new Goal.RateAtLeast(0.97), server, table);
            inProcess(bench, 64, new Goal.RateAtLeast(3), server, table);
        }
        return table;
    }

    private static void http(BenchmarkRun bench, int connections, Goal goal, NereidProcess server, Table table)
            throws IOException, InterruptedException {
        String load = "HTTP x " + connections;
        bench.run(
                new CeilingComparison(
                        Wrk.on(load + ", batched", bench, connections, MlpSection.ONE, server.inferUrl(BATCHED)),
                        List.of(new Ceiling(
                                Wrk.on("one by one", bench, connections, MlpSection.ONE, server.inferUrl(ALONE)),
                                goal))),
                table);
    }

    private static void inProcess(BenchmarkRun bench, int calls, Goal goal, NereidServer server, Table table)
            throws IOException, InterruptedException {
        String load = "in process x " + calls;
        try (EmbeddedLoad batched = new EmbeddedLoad(
                        load + ", batched", server, BATCHED, MlpSection.ONE, calls, EmbeddedLane.Ending.RESPONSE);
                EmbeddedLoad alone = new EmbeddedLoad(
                        "one by one", server, ALONE, MlpSection.ONE, calls, EmbeddedLane.Ending.RESPONSE)) {
            bench.run(new CeilingComparison(batched, List.of(new Ceiling(alone, goal))), table);
        }
    }
}
