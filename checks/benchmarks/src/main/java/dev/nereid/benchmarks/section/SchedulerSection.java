package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.micro.Microbenchmark;
import dev.nereid.benchmarks.micro.SchedulerBenchmark;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import dev.nereid.benchmarks.run.Pace;
import java.io.IOException;
import java.util.Locale;
import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.util.Statistics;

/** Measures scheduling in process, without sockets: {@link SchedulerBenchmark}. */
final class SchedulerSection {
    private static final double MIN_RATE = 400_000;
    private static final double MAX_PING_PONG_RATIO = 1.25;
    private static final double MAX_DIRECT_MICROS = 5;
    private static final double MIN_BATCH_SHARE = 0.5;
    private static final double MAX_HOP_MICROS = 5;
    private static final int MEDIAN = 50;
    private static final int NEARLY_ALL = 99;

    private SchedulerSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = new Table(
                "In process: a request to a model that does nothing", "WHAT", "RATE", "P50", "P99", "TARGET", "");
        double rate = run(bench, "batched").getMean();
        table.add(
                SchedulerBenchmark.SUBMITTERS + " threads, " + SchedulerBenchmark.WINDOW + " under way each, batched",
                Figures.rate(rate),
                "",
                "",
                ">= " + Figures.rate(MIN_RATE),
                Figures.verdict(rate >= MIN_RATE));
        Statistics pingPong = run(bench, "pingPong");
        Statistics synchronous = run(bench, "synchronous");
        double ratio = synchronous.getPercentile(MEDIAN) / pingPong.getPercentile(MEDIAN);
        addTimes(
                table,
                "one at a time, batched: " + Figures.ratio(ratio) + " park/unpark",
                synchronous,
                "<= " + Figures.ratio(MAX_PING_PONG_RATIO),
                ratio <= MAX_PING_PONG_RATIO);
        table.add("  park/unpark of two threads", "", micros(pingPong, MEDIAN), micros(pingPong, NEARLY_ALL), "", "");
        Statistics direct = run(bench, "direct");
        addTimes(
                table,
                "one at a time, executed directly",
                direct,
                String.format(Locale.ROOT, "p50 <= %.0f us", MAX_DIRECT_MICROS),
                direct.getPercentile(MEDIAN) * TimeUnit.SECONDS.toMicros(1) <= MAX_DIRECT_MICROS);
        pipeline(bench, table);
        return table;
    }

    private static void pipeline(BenchmarkRun bench, Table table) throws InterruptedException {
        bench.progress().accept("two models");
        Pace pace = bench.options().pace();
        PipelineLoad.Result found = PipelineLoad.run(pace.warmUp(), pace.measured());
        double share = found.secondBatch() / found.firstBatch();
        table.add(
                "two models, " + PipelineLoad.IN_FLIGHT + " under way: mean batches "
                        + String.format(Locale.ROOT, "%.1f and %.1f", found.firstBatch(), found.secondBatch()),
                Figures.rate(found.perSecond()),
                "",
                "",
                ">= " + Figures.ratio(MIN_BATCH_SHARE),
                Figures.verdict(share >= MIN_BATCH_SHARE));
        table.add(
                "  from the first response to the second execution",
                "",
                String.format(Locale.ROOT, "%.2f us", found.hopMicros()),
                "",
                String.format(Locale.ROOT, "p50 <= %.0f us", MAX_HOP_MICROS),
                Figures.verdict(found.hopMicros() <= MAX_HOP_MICROS));
    }

    private static void addTimes(Table table, String row, Statistics times, String target, boolean met) {
        table.add(row, "", micros(times, MEDIAN), micros(times, NEARLY_ALL), target, Figures.verdict(met));
    }

    private static String micros(Statistics seconds, int percentile) {
        return String.format(Locale.ROOT, "%.2f us", seconds.getPercentile(percentile) * TimeUnit.SECONDS.toMicros(1));
    }

    private static Statistics run(BenchmarkRun bench, String method) throws IOException {
        bench.progress().accept(method);
        return Microbenchmark.of(SchedulerBenchmark.class, method)
                .run(bench.options().pace())
                .getPrimaryResult()
                .getStatistics();
    }
}
