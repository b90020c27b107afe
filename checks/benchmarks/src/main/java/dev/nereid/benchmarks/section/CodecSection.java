package dev.nereid.benchmarks.section;

import static java.util.Objects.requireNonNull;

import dev.nereid.benchmarks.micro.CodecBenchmark;
import dev.nereid.benchmarks.micro.JsonCodec;
import dev.nereid.benchmarks.micro.Microbenchmark;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.Pace;
import java.io.IOException;
import java.util.Locale;
import java.util.Map;
import org.openjdk.jmh.util.Statistics;

/** Measures reading and writing of JSON tensors on one thread: {@link CodecBenchmark}. */
final class CodecSection {
    private static final double MIN_MB = 200;
    private static final int MEDIAN = 50;

    private CodecSection() {}

    static Table measure(BenchmarkRun bench) throws IOException {
        Table table = new Table("JSON of 1,000,000 FP32 values, one thread", "WHAT", "MEDIAN", "LOWEST", "TARGET", "");
        for (JsonCodec.Values values : JsonCodec.Values.values()) {
            measure(bench, "read", values, table);
            measure(bench, "write", values, table);
        }
        return table;
    }

    private static void measure(BenchmarkRun bench, String method, JsonCodec.Values values, Table table)
            throws IOException {
        String row = method + ", " + values.text();
        bench.progress().accept(row);
        Statistics rates = run(bench.options().pace(), method, values);
        double median = rates.getPercentile(MEDIAN);
        // The goal is for floats that need all their digits; the others are for information.
        boolean counts = values == JsonCodec.Values.UNIFORM;
        table.add(
                row,
                rate(median),
                rate(rates.getMin()),
                counts ? ">= " + rate(MIN_MB) : "",
                counts ? Figures.verdict(median >= MIN_MB) : "");
    }

    /** Returns how many megabytes were read or written in a second, for every second. */
    private static Statistics run(Pace pace, String method, JsonCodec.Values values) throws IOException {
        return requireNonNull(new Microbenchmark(CodecBenchmark.class, method, Map.of("values", values.name()))
                        .run(pace)
                        .getSecondaryResults()
                        .get("bytes"))
                .getStatistics();
    }

    private static String rate(double megabytes) {
        return String.format(Locale.ROOT, "%.0f MB/s", megabytes);
    }
}
