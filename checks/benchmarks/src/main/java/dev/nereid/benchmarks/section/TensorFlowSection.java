package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.EmbeddedLane;
import dev.nereid.benchmarks.load.EmbeddedLoad;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.TensorFlowLoop;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.TensorFlowModels;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.CeilingComparison;
import dev.nereid.benchmarks.run.CeilingComparison.Ceiling;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.List;
import java.util.stream.Stream;

/** Measures models of TensorFlow, embedded in the process, beside the bare C API on the same library. */
final class TensorFlowSection {
    private static final String MLP = "mlp_tf";
    private static final String CONVOLUTIONS = "convolutions_tf";
    private static final String TINY = "variable";
    private static final int IN_FLIGHT = 8;
    private static final int MICROS_MORE = 15;

    /** One instance, and batches of all requests in flight: the size at which TensorFlow is called directly. */
    private static final String BATCHES = """
            platform: "tensorflow_savedmodel"
            max_batch_size: 8
            dynamic_batching { preferred_batch_size: [ 8 ] max_queue_delay_microseconds: 500 }
            instance_group { count: 1 kind: KIND_CPU }
            """;

    private TensorFlowSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = CeilingComparison.table("TensorFlow, in process, requests in flight");
        Path repository = TensorFlowModels.make(bench);
        Files.delete(repository.resolve("made"));
        ModelRepositories.write(repository, MLP, BATCHES);
        ModelRepositories.write(repository, CONVOLUTIONS, BATCHES);
        int threads = Runtime.getRuntime().availableProcessors();
        try (NereidServer server = NereidServer.start(
                ServerOptions.of(repository).withPlugins(bench.installed().resolve("plugins")))) {
            inProcess(bench, server, table, batched(CONVOLUTIONS, "image", repository, threads, 28L, 28L, 1L));
            inProcess(bench, server, table, batched(MLP, "features", repository, threads, 256L));
            inProcess(bench, server, table, tiny(repository, threads));
        }
        return table;
    }

    /** A model, its requests, the input for a direct run of TensorFlow, and the goal relative to that. */
    private record Comparison(
            String model,
            InferBody request,
            int inFlight,
            Path file,
            InferBody direct,
            String output,
            int threads,
            Goal goal) {}

    private static Comparison batched(String model, String input, Path repository, int threads, Long... dims) {
        return new Comparison(
                model,
                body(input, 1, dims),
                IN_FLIGHT,
                file(repository, model),
                body(input, IN_FLIGHT, dims),
                "scores",
                threads,
                new Goal.RateAtLeast(0.9));
    }

    private static InferBody body(String input, long items, Long... dims) {
        return InferBody.of(
                input, Stream.concat(Stream.of(items), Stream.of(dims)).toArray(Long[]::new));
    }

    private static Comparison tiny(Path repository, int threads) {
        InferBody body = InferBody.of("x", 1L, 4L);
        Goal goal = new Goal.LatencyWithin(Duration.ofNanos(MICROS_MORE * 1_000L));
        return new Comparison(TINY, body, 1, file(repository, TINY), body, "sum", threads, goal);
    }

    private static Path file(Path repository, String model) {
        return repository.resolve(model).resolve("1/model.savedmodel");
    }

    private static void inProcess(BenchmarkRun bench, NereidServer server, Table table, Comparison what)
            throws IOException, InterruptedException {
        try (EmbeddedLoad served = new EmbeddedLoad(
                        what.model() + " x " + what.inFlight(),
                        server,
                        what.model(),
                        what.request(),
                        what.inFlight(),
                        EmbeddedLane.Ending.RESPONSE);
                TensorFlowLoop direct =
                        TensorFlowLoop.load(what.file(), what.direct(), what.output(), what.threads())) {
            bench.run(new CeilingComparison(served, List.of(new Ceiling(direct, what.goal()))), table);
        }
    }
}
