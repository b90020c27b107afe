package dev.nereid.benchmarks;

import dev.nereid.benchmarks.Contest.Ceiling;
import dev.nereid.server.NereidServer;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** What batching gains or costs: a cheap model with {@code dynamic_batching { }} beside the same without. */
final class BatchingSection {
    private static final String BATCHED = "mlp_batched";
    private static final String ALONE = "mlp_alone";

    private BatchingSection() {}

    static Table measure(Bench bench) throws IOException, InterruptedException {
        Table table = Contest.table(MlpSection.MODEL + ", dynamic_batching { } beside one by one");
        Optional<Path> file = ModelFolder.shared(bench, MlpSection.MODEL);
        if (file.isEmpty()) {
            table.note("left out: ../shared/models/" + MlpSection.MODEL + ".onnx is not there");
            return table;
        }
        Path repository = bench.workspace().path("models-batching");
        ModelFolder.onnx(repository, BATCHED, file.get(), MlpSection.BATCHED);
        ModelFolder.onnx(repository, ALONE, file.get(), MlpSection.TENSORS);
        try (NereidProcess server = NereidProcess.start(bench, Launch.withExamples(bench, repository))) {
            http(bench, 1, new Goal.RateAtLeast(0.97), server, table);
            http(bench, 64, new Goal.RateAtLeast(1.3), server, table);
        }
        try (NereidServer server = NereidServer.builder()
                .modelRepositories(repository)
                .pluginDirectories(bench.installed().resolve("plugins"))
                .start()) {
            inProcess(bench, 1, new Goal.RateAtLeast(0.97), server, table);
            inProcess(bench, 64, new Goal.RateAtLeast(3), server, table);
        }
        return table;
    }

    private static void http(Bench bench, int connections, Goal goal, NereidProcess server, Table table)
            throws IOException, InterruptedException {
        String load = "HTTP x " + connections;
        bench.run(
                new Contest(
                        Wrk.on(load + ", batched", bench, connections, MlpSection.ONE, server.inferUrl(BATCHED)),
                        List.of(new Ceiling(
                                Wrk.on("one by one", bench, connections, MlpSection.ONE, server.inferUrl(ALONE)),
                                goal))),
                table);
    }

    private static void inProcess(Bench bench, int calls, Goal goal, NereidServer server, Table table)
            throws IOException, InterruptedException {
        String load = "in process x " + calls;
        try (EmbeddedLoad batched = new EmbeddedLoad(
                        load + ", batched", server, BATCHED, MlpSection.ONE, calls, EmbeddedLane.Ending.RESPONSE);
                EmbeddedLoad alone = new EmbeddedLoad(
                        "one by one", server, ALONE, MlpSection.ONE, calls, EmbeddedLane.Ending.RESPONSE)) {
            bench.run(new Contest(batched, List.of(new Ceiling(alone, goal))), table);
        }
    }
}
