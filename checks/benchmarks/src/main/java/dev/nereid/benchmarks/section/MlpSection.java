package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.HttpResponseCheck;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.OnnxLoop;
import dev.nereid.benchmarks.load.Wrk;
import dev.nereid.benchmarks.process.EchoMain;
import dev.nereid.benchmarks.process.EchoProcess;
import dev.nereid.benchmarks.process.HttpEcho;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.CeilingComparison;
import dev.nereid.benchmarks.run.CeilingComparison.Ceiling;
import java.io.IOException;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** Measures server overhead over HTTP with a cheap, dynamically batched model. */
final class MlpSection {
    static final String MODEL = "mlp_256_random";
    private static final String INPUT = "features";
    private static final long FEATURES = 256;

    /** The configuration without batching. */
    static final String TENSORS = """
            max_batch_size: 64
            input [ { name: "features" data_type: TYPE_FP32 dims: [ 256 ] } ]
            output [ { name: "scores" data_type: TYPE_FP32 dims: [ 64 ] } ]
            """;

    static final String BATCHED = TENSORS + "dynamic_batching { }\n";

    static final InferBody ONE = InferBody.of(INPUT, 1L, FEATURES);

    private static final InferBody BATCH = InferBody.of(INPUT, 32L, FEATURES);

    private MlpSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = CeilingComparison.table("HTTP: " + MODEL + ", dynamic_batching { }, connections");
        Optional<Path> file = ModelRepositories.shared(bench, MODEL);
        if (file.isEmpty()) {
            table.addFootnote("left out: ../shared/models/" + MODEL + ".onnx is not there");
            return table;
        }
        Path repository = ModelRepositories.onnx(bench, MODEL, file.get(), BATCHED);
        try (NereidProcess server = NereidProcess.start(bench, Launch.withExamples(bench, repository));
                EchoProcess echo = EchoProcess.start(bench, server.jvm(), EchoMain.HTTP_ECHO)) {
            check(server, file.get());
            measure(bench, 1, Goal.none(), file.get(), server, echo, table);
            measure(bench, 64, new Goal.RateAtLeast(0.35), file.get(), server, echo, table);
        }
        return table;
    }

    private static void check(NereidProcess server, Path file) throws IOException, InterruptedException {
        try (OnnxLoop loop = OnnxLoop.load(file, ONE, 1)) {
            HttpResponseCheck.check(server.inferUrl(MODEL), ONE, loop.output());
        }
    }

    private static void measure(
            BenchmarkRun bench,
            int connections,
            Goal goal,
            Path file,
            NereidProcess server,
            EchoProcess echo,
            Table table)
            throws IOException, InterruptedException {
        String echoUrl = echo.url(HttpEcho.WHOLE);
        // A pool of ONNX Runtime spins for a while after its last run: it exists only while it is measured.
        try (OnnxLoop batch = OnnxLoop.load(file, BATCH, 1)) {
            bench.run(
                    new CeilingComparison(
                            Wrk.on(MODEL + " x " + connections, bench, connections, ONE, server.inferUrl(MODEL)),
                            List.of(
                                    new Ceiling(
                                            Wrk.on("Vert.x echo, request.body()", bench, connections, ONE, echoUrl),
                                            goal),
                                    new Ceiling(batch, Goal.none()))),
                    table);
        }
    }
}
