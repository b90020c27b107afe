package dev.nereid.benchmarks.pytorch;

import dev.nereid.benchmarks.load.EmbeddedLane;
import dev.nereid.benchmarks.load.EmbeddedLoad;
import dev.nereid.benchmarks.load.InferBody;
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

/** Measures models of PyTorch, embedded in the process, beside calls of their modules in a loop. */
public final class PyTorchSection {
    private static final int IN_FLIGHT = 8;
    private static final double SHARE = 0.95;
    private static final int MICROS_MORE = 20;

    private PyTorchSection() {}

    /** Measures. Blocks. */
    public static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = CeilingComparison.table("PyTorch, in process, requests in flight");
        Path repository = PyTorchModels.make(bench);
        int threads = Runtime.getRuntime().availableProcessors();
        InferBody image = InferBody.of("x", 1L, 3L, 224L, 224L);
        InferBody row = InferBody.of("x", 1L, 64L);
        try (NereidServer server = NereidServer.start(
                ServerOptions.of(repository).withPlugins(bench.installed().resolve("plugins")))) {
            compare(bench, server, table, PyTorchModels.RESNET, image, 1, loop(repository, image, threads));
            compare(
                    bench,
                    server,
                    table,
                    PyTorchModels.BATCHED_RESNET,
                    image,
                    IN_FLIGHT,
                    loop(repository, InferBody.of("x", (long) IN_FLIGHT, 3L, 224L, 224L), threads));
            try (TorchLoop direct =
                    TorchLoop.load(repository.resolve(PyTorchModels.LINEAR).resolve("1/model.pt"), row, 1)) {
                compare(
                        bench,
                        server,
                        table,
                        PyTorchModels.LINEAR,
                        row,
                        1,
                        direct,
                        new Goal.LatencyWithin(Duration.ofNanos(MICROS_MORE * 1_000L)));
            }
        }
        return table;
    }

    private static TorchLoop loop(Path repository, InferBody body, int threads) throws IOException {
        return TorchLoop.load(repository.resolve(PyTorchModels.RESNET).resolve("1/model.pt"), body, threads);
    }

    private static void compare(
            BenchmarkRun bench,
            NereidServer server,
            Table table,
            String model,
            InferBody request,
            int inFlight,
            TorchLoop loop)
            throws IOException, InterruptedException {
        try (loop) {
            compare(bench, server, table, model, request, inFlight, loop, new Goal.RateAtLeast(SHARE));
        }
    }

    private static void compare(
            BenchmarkRun bench,
            NereidServer server,
            Table table,
            String model,
            InferBody request,
            int inFlight,
            TorchLoop loop,
            Goal goal)
            throws IOException, InterruptedException {
        try (EmbeddedLoad served = new EmbeddedLoad(
                model + " x " + inFlight, server, model, request, inFlight, EmbeddedLane.Ending.RESPONSE)) {
            bench.run(new CeilingComparison(served, List.of(new Ceiling(loop, goal))), table);
        }
    }
}
