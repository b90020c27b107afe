package dev.nereid.benchmarks;

import java.io.IOException;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.util.Statistics;

/**
 * What scheduling costs in process, without sockets and with a backend that does nothing: {@link SchedulerBenchmark}.
 */
final class SchedulerSection {
    private static final double LEAST_RATE = 400_000;
    private static final double MOST_OF_PING_PONG = 1.25;
    private static final double MOST_DIRECT_MICROS = 5;
    private static final int MEDIAN = 50;
    private static final int NEARLY_ALL = 99;

    private SchedulerSection() {}

    static Table measure(Bench bench) throws IOException {
        Table table = new Table(
                "In process: a request to a model that does nothing", "WHAT", "RATE", "P50", "P99", "TARGET", "");
        double rate = run(bench, "batched").getMean();
        table.add(
                SchedulerBenchmark.SUBMITTERS + " threads, " + SchedulerBenchmark.WINDOW + " under way each, batched",
                Figures.rate(rate),
                "",
                "",
                ">= " + Figures.rate(LEAST_RATE),
                Figures.verdict(rate >= LEAST_RATE));
        Statistics pingPong = run(bench, "pingPong");
        Statistics synchronous = run(bench, "synchronous");
        double ratio = synchronous.getPercentile(MEDIAN) / pingPong.getPercentile(MEDIAN);
        addTimes(
                table,
                "one at a time, batched: " + Figures.ratio(ratio) + " park/unpark",
                synchronous,
                "<= " + Figures.ratio(MOST_OF_PING_PONG),
                ratio <= MOST_OF_PING_PONG);
        table.add("  park/unpark of two threads", "", micros(pingPong, MEDIAN), micros(pingPong, NEARLY_ALL), "", "");
        Statistics direct = run(bench, "direct");
        addTimes(
                table,
                "one at a time, executed directly",
                direct,
                String.format(Locale.ROOT, "p50 <= %.0f us", MOST_DIRECT_MICROS),
                direct.getPercentile(MEDIAN) * TimeUnit.SECONDS.toMicros(1) <= MOST_DIRECT_MICROS);
        return table;
    }

    private static void addTimes(Table table, String what, Statistics times, String target, boolean met) {
        table.add(what, "", micros(times, MEDIAN), micros(times, NEARLY_ALL), target, Figures.verdict(met));
    }

    private static String micros(Statistics seconds, int percentile) {
        return String.format(Locale.ROOT, "%.2f us", seconds.getPercentile(percentile) * TimeUnit.SECONDS.toMicros(1));
    }

    private static Statistics run(Bench bench, String method) throws IOException {
        bench.progress().accept(method);
        return Microbenchmark.of(SchedulerBenchmark.class, method)
                .run(bench.options().pace())
                .getPrimaryResult()
                .getStatistics();
    }
}
