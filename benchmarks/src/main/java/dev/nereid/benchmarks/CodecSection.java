package dev.nereid.benchmarks;

import static java.util.Objects.requireNonNull;

import dev.nereid.http.JsonCodec;
import java.io.IOException;
import java.time.Duration;
import java.util.Locale;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.Options;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.TimeValue;
import org.openjdk.jmh.runner.options.VerboseMode;
import org.openjdk.jmh.util.Statistics;

/**
 * How fast JSON tensors are read and written on one thread, without a server: {@link CodecBenchmark}, each of its
 * benchmarks in a process of its own with the options of this one.
 */
final class CodecSection {
    private static final double LEAST_MB = 200;
    private static final int MEDIAN = 50;

    private CodecSection() {}

    static Table measure(Bench bench) throws IOException {
        Table table = new Table("JSON of 1,000,000 FP32 values, one thread", "WHAT", "MEDIAN", "LOWEST", "TARGET", "");
        for (JsonCodec.Values values : JsonCodec.Values.values()) {
            measure(bench, "read", values, table);
            measure(bench, "write", values, table);
        }
        return table;
    }

    private static void measure(Bench bench, String method, JsonCodec.Values values, Table table) throws IOException {
        String what = method + ", " + values.text();
        bench.progress().accept(what);
        Statistics rates = run(bench.options().pace(), method, values);
        double median = rates.getPercentile(MEDIAN);
        // The goal is for floats that need all their digits; the others show what else there is.
        boolean counts = values == JsonCodec.Values.UNIFORM;
        table.add(
                what,
                rate(median),
                rate(rates.getMin()),
                counts ? ">= " + rate(LEAST_MB) : "",
                counts ? Figures.verdict(median >= LEAST_MB) : "");
    }

    /** Returns how many megabytes were read or written in a second, for every second. */
    private static Statistics run(Pace pace, String method, JsonCodec.Values values) throws IOException {
        Options options = new OptionsBuilder()
                .include(CodecBenchmark.class.getName() + "." + method + "$")
                .param("values", values.name())
                .forks(1)
                .warmupIterations(seconds(pace.warmUp()))
                .warmupTime(TimeValue.seconds(1))
                .measurementIterations(seconds(pace.measured()) * pace.rounds())
                .measurementTime(TimeValue.seconds(1))
                .shouldFailOnError(true)
                .verbosity(VerboseMode.SILENT)
                .build();
        try {
            RunResult result = new Runner(options).runSingle();
            return requireNonNull(result.getSecondaryResults().get("bytes")).getStatistics();
        } catch (RunnerException e) {
            throw new IOException("JMH: " + e.getMessage(), e);
        }
    }

    private static int seconds(Duration duration) {
        return Math.toIntExact(duration.toSeconds());
    }

    private static String rate(double megabytes) {
        return String.format(Locale.ROOT, "%.0f MB/s", megabytes);
    }
}
