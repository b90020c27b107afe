package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.load.InferBody;
import dev.nereid.benchmarks.load.Wrk;
import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.FirstMinute;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Locale;

/** Measures the first minute of a server under 64 connections. */
final class FirstMinuteSection {
    private static final InferBody BODY = InferBody.of("INPUT0", 1L, 256L);
    private static final int CONNECTIONS = 64;
    private static final int SHOWN = 10;
    private static final double MAX_SECONDS = 2;

    private FirstMinuteSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        Table table = new Table(
                "First minute: identity, binary tensors of 1 KB, 64 connections, HTTP",
                "WHAT",
                "FIRST SECOND",
                "FINAL",
                "EXEC TO 90 %",
                "TARGET",
                "");
        Path repository = ModelRepositories.identity(bench);
        Path home = bench.installed();
        if (Files.exists(home.resolve("lib/nereid.aot"))) {
            measure(bench, "with AOT cache", Launch.withExamples(bench, repository), true, table);
        } else {
            table.addFootnote("left out: the start with an AOT cache, since nereid-aot made none");
        }
        Path without = StartSection.withoutCache(bench, "first-minute");
        measure(bench, "without AOT cache", Launch.withExamples(bench, without, repository), false, table);
        return table;
    }

    private static void measure(BenchmarkRun bench, String how, Launch launch, boolean hasGoal, Table table)
            throws IOException, InterruptedException {
        bench.progress().accept("first minute " + how);
        Duration time = bench.options().pace().firstMinute();
        FirstMinute minute;
        try (NereidProcess server = NereidProcess.start(bench, launch)) {
            minute = Wrk.firstMinute(
                    bench, CONNECTIONS, BODY, server.inferUrl(ModelRepositories.IDENTITY), server.age(), time);
        }
        table.add(
                how,
                Figures.rate(minute.firstSecond()),
                Figures.rate(minute.finalRate()),
                seconds(minute.secondsToSpeed()),
                hasGoal ? "<= " + seconds(MAX_SECONDS) : "",
                hasGoal ? Figures.verdict(minute.secondsToSpeed() <= MAX_SECONDS) : "");
        table.addFootnote("requests in each second since exec, " + how + ": " + minute.first(SHOWN) + " ...");
    }

    private static String seconds(double seconds) {
        return String.format(Locale.ROOT, "%.1f s", seconds);
    }
}
