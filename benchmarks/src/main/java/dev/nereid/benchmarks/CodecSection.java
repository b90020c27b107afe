package dev.nereid.benchmarks;

import dev.nereid.http.JsonCodec;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import java.util.function.IntSupplier;

/** How fast JSON tensors are read and written on one thread, in this process, without a server. */
final class CodecSection {
    private static final int VALUES = 1_000_000;
    private static final double LEAST_MB = 200;

    private CodecSection() {}

    static Table measure(Bench bench) {
        Table table = new Table("JSON of 1,000,000 FP32 values, one thread", "WHAT", "MEDIAN", "LOWEST", "TARGET", "");
        // The goal is for floats that need all their digits; the others show what else there is.
        for (JsonCodec.Values values : JsonCodec.Values.values()) {
            try (JsonCodec codec = new JsonCodec(values, VALUES)) {
                boolean counts = values == JsonCodec.Values.UNIFORM;
                measure(bench, "read, " + values.text(), codec::read, counts, table);
                measure(bench, "write, " + values.text(), codec::write, counts, table);
            }
        }
        return table;
    }

    private static void measure(Bench bench, String what, IntSupplier work, boolean counts, Table table) {
        bench.progress().accept(what);
        run(work, bench.options().pace().warmUp().toNanos());
        List<Double> rates = run(work, bench.options().pace().measured().toNanos());
        double median = Figures.median(rates);
        table.add(
                what,
                rate(median),
                rate(Collections.min(rates)),
                counts ? ">= " + rate(LEAST_MB) : "",
                counts ? Figures.verdict(median >= LEAST_MB) : "");
    }

    /** Returns how many megabytes each run read or wrote in a second. */
    private static List<Double> run(IntSupplier work, long nanos) {
        List<Double> rates = new ArrayList<>();
        long start = System.nanoTime();
        for (long now = start; now - start < nanos; ) {
            int bytes = work.getAsInt();
            long end = System.nanoTime();
            rates.add((double) bytes / TimeUnit.NANOSECONDS.toMicros(end - now));
            now = end;
        }
        return rates;
    }

    private static String rate(double megabytes) {
        return String.format(Locale.ROOT, "%.0f MB/s", megabytes);
    }
}
