package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.HttpResponseCheck;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.OnnxLoop;
import dev.nereid.benchmarks.load.Wrk;
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
import java.time.Duration;
import java.util.List;
import java.util.Optional;

/** Measures a model that computes for milliseconds, batched dynamically, over HTTP. */
final class SqueezenetSection {
    private static final String MODEL = "squeezenet1_1_random";
    private static final String INPUT = "image";
    private static final long CHANNELS = 3;
    private static final long PIXELS = 224;

    private static final int BATCH_SIZE = 8;

    private static final Duration MAX_EXTRA = Duration.ofNanos(500_000);
    private static final double MIN_SHARE = 0.95;

    private static final InferBody ONE = InferBody.of(INPUT, 1L, CHANNELS, PIXELS, PIXELS);
    private static final InferBody BATCH = InferBody.of(INPUT, (long) BATCH_SIZE, CHANNELS, PIXELS, PIXELS);

    private SqueezenetSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        int threads = bench.options().onnxThreads();
        Table table = CeilingComparison.table("HTTP: " + MODEL + ", dynamic_batching { }, connections");
        Optional<Path> file = ModelRepositories.shared(bench, MODEL);
        if (file.isEmpty()) {
            table.addFootnote("left out: ../shared/models/" + MODEL + ".onnx is not there");
            return table;
        }
        Path repository = ModelRepositories.onnx(bench, MODEL, file.get(), config(threads));
        try (NereidProcess server = NereidProcess.start(bench, Launch.withExamples(bench, repository))) {
            String url = server.inferUrl(MODEL);
            try (OnnxLoop loop = OnnxLoop.load(file.get(), ONE, threads)) {
                HttpResponseCheck.check(url, ONE, loop.output());
                bench.run(contest(bench, 1, url, loop, new Goal.LatencyWithin(MAX_EXTRA)), table);
            }
            try (OnnxLoop batch = OnnxLoop.load(file.get(), BATCH, threads)) {
                bench.run(contest(bench, BATCH_SIZE, url, batch, new Goal.RateAtLeast(MIN_SHARE)), table);
            }
        }
        return table;
    }

    private static String config(int threads) {
        return """
            max_batch_size: 8
            input [ { name: "image" data_type: TYPE_FP32 dims: [ 3, 224, 224 ] } ]
            output [ { name: "scores" data_type: TYPE_FP32 dims: [ 1000 ] } ]
            dynamic_batching { }
            instance_group [ { count: 1 kind: KIND_CPU } ]
            parameters { key: "intra_op_thread_count" value { string_value: "%d" } }
            """.formatted(threads);
    }

    private static CeilingComparison contest(
            BenchmarkRun bench, int connections, String url, OnnxLoop ceiling, Goal goal) throws IOException {
        return new CeilingComparison(
                Wrk.on(MODEL + " x " + connections, bench, connections, ONE, url), List.of(new Ceiling(ceiling, goal)));
    }
}
