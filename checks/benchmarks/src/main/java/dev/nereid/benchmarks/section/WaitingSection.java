package dev.nereid.benchmarks.section;

import dev.nereid.api.ModelRef;
import dev.nereid.benchmarks.load.EmbeddedLane;
import dev.nereid.benchmarks.load.EmbeddedLoad;
import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.server.NereidServer;
import dev.nereid.server.options.ServerOptions;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** Measures concurrency and timeouts of sleeping instances, embedded in this process. */
final class WaitingSection {
    private static final int REQUESTS = 64;
    private static final Duration TIME = Duration.ofSeconds(20);
    private static final double MIN_SHARE = 0.97;
    private static final double MAX_LATE_MICROS = TimeUnit.MILLISECONDS.toMicros(5);

    private static final String SLEEPING = "sleeping";
    private static final int INSTANCES = 4;
    private static final int SLEEP_MILLIS = 100;
    private static final String TENSORS = """
            backend: "identity"
            max_batch_size: 1
            input [ { name: "INPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
            output [ { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 1 ] } ]
            parameters { key: "execute_delay_ms" value: { string_value: "%d" } }
            """.formatted(SLEEP_MILLIS);

    private static final String IMPATIENT = "impatient";
    private static final int TIMEOUT_MILLIS = 50;

    private static final InferBody ONE = InferBody.of("INPUT0", 1L, 1L);

    private WaitingSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = new Table(
                "In process: identity that sleeps 100 ms, 64 requests in flight, 20 s", "WHAT", "FOUND", "TARGET", "");
        Path repository = bench.workspace().path("models-waiting");
        ModelRepositories.write(repository, SLEEPING, TENSORS + "instance_group [ { kind: KIND_CPU count: 4 } ]");
        ModelRepositories.write(repository, IMPATIENT, TENSORS + """
                dynamic_batching { default_queue_policy { default_timeout_microseconds: 50000 } }
                """);
        try (NereidServer server = NereidServer.start(
                ServerOptions.of(repository).withPlugins(bench.checkout().resolve("examples/plugins")))) {
            bench.progress().accept(SLEEPING);
            sleep(server, table);
            bench.progress().accept(IMPATIENT);
            expire(server, table);
        }
        return table;
    }

    private static void sleep(NereidServer server, Table table) throws IOException, InterruptedException {
        try (EmbeddedLoad load =
                new EmbeddedLoad(SLEEPING, server, SLEEPING, ONE, REQUESTS, EmbeddedLane.Ending.RESPONSE)) {
            load.load(Duration.ofSeconds(1));
            long start = System.nanoTime();
            long before = executingNanos(server);
            Sample sample = load.load(TIME);
            // Together with the calls that were still under way at the end of the time.
            double depth = (double) (executingNanos(server) - before) / (System.nanoTime() - start);
            double limit = (double) INSTANCES * TimeUnit.SECONDS.toMillis(1) / SLEEP_MILLIS;
            add(table, "executions under way, mean (at most 4)", "%.3f", depth, ">=", MIN_SHARE * INSTANCES);
            add(table, "calls per second (at most 40)", "%.2f", sample.perSecond(), ">=", MIN_SHARE * limit);
        }
    }

    /** Returns how long the instances have executed in all. */
    private static long executingNanos(NereidServer server) {
        return server.models()
                .statistics(ModelRef.latest(SLEEPING))
                .getFirst()
                .inferences()
                .compute()
                .infer()
                .nanos();
    }

    private static void expire(NereidServer server, Table table) throws IOException, InterruptedException {
        try (EmbeddedLoad load =
                new EmbeddedLoad(IMPATIENT, server, IMPATIENT, ONE, REQUESTS, EmbeddedLane.Ending.TIMEOUT)) {
            load.load(Duration.ofSeconds(1));
            Sample sample = load.load(TIME);
            double late = sample.p99Micros() - TimeUnit.MILLISECONDS.toMicros(TIMEOUT_MILLIS);
            add(
                    table,
                    "timeouts of 50 ms, p99 after the deadline," + " ms",
                    "%.2f",
                    late / 1000,
                    "<=",
                    MAX_LATE_MICROS / 1000);
        }
    }

    private static void add(Table table, String row, String format, double found, String relation, double target) {
        boolean met = relation.equals("<=") ? found <= target : found >= target;
        table.add(
                row,
                String.format(Locale.ROOT, format, found),
                relation + " " + String.format(Locale.ROOT, format, target),
                Figures.verdict(met));
    }
}
