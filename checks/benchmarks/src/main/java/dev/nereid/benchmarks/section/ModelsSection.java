package dev.nereid.benchmarks.section;

import dev.nereid.benchmarks.process.Launch;
import dev.nereid.benchmarks.process.ModelRepositories;
import dev.nereid.benchmarks.process.NereidProcess;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.BenchmarkRun;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.ToDoubleFunction;
import org.jspecify.annotations.Nullable;

/** Measures servers with many models that get no requests: start, threads, memory and stop. */
final class ModelsSection {
    private static final List<Integer> COUNTS = List.of(250, 500, 1000);
    private static final Duration IDLE = Duration.ofSeconds(10);
    private static final double BYTES_PER_MIB = 1 << 20;
    private static final double PERCENT = 100;

    private static final double MAX_MIB = 369;
    private static final int MAX_THREADS = 100;
    private static final double MAX_IDLE_PERCENT = 1;
    private static final double MAX_STOP_SECONDS = 3;

    /** The memory of the second half of the models to that of the second quarter, twice: 1 if the growth is linear. */
    private static final double MAX_GROWTH = 1.25;

    /** The figures of one server. */
    private record Idle(double startSeconds, long threads, double mebibytes, double idlePercent, double stopSeconds) {}

    private ModelsSection() {}

    static Table measure(BenchmarkRun bench) throws IOException, InterruptedException {
        List<String> headers = new ArrayList<>(List.of("MODELS"));
        COUNTS.forEach(count -> headers.add(String.valueOf(count)));
        headers.addAll(List.of("TARGET", ""));
        Table table = new Table("Many models: copies of " + JsonSection.MODEL, headers.toArray(String[]::new));
        Optional<Path> file = ModelRepositories.recorded(bench, JsonSection.MODEL);
        if (file.isEmpty()) {
            table.addFootnote("left out: ../shared/golden/models/" + JsonSection.MODEL + " is not there");
            return table;
        }
        List<Idle> servers = new ArrayList<>();
        for (int count : COUNTS) {
            bench.progress().accept(count + " models");
            servers.add(serve(bench, repository(bench, file.get(), count), List.of()));
        }
        bench.progress().accept(COUNTS.getLast() + " models on demand");
        Idle onDemand = serve(
                bench, bench.workspace().path("models-" + COUNTS.getLast()), List.of("--model-control-mode=demand"));
        add(table, servers, "exec to ready", "%.1f s", Idle::startSeconds, null);
        add(table, servers, "threads before the first request", "%.0f", Idle::threads, (double) MAX_THREADS);
        add(table, servers, "resident memory idle", "%.0f MiB", Idle::mebibytes, MAX_MIB);
        add(table, servers, "processor use idle", "%.1f %%", Idle::idlePercent, MAX_IDLE_PERCENT);
        add(table, servers, "SIGTERM to exit", "%.2f s", Idle::stopSeconds, MAX_STOP_SECONDS);
        addGrowth(table, servers);
        addOnDemand(table, "on demand: exec to ready", text("%.1f s", onDemand.startSeconds()));
        addOnDemand(table, "on demand: resident memory idle", text("%.0f MiB", onDemand.mebibytes()));
        return table;
    }

    private static Path repository(BenchmarkRun bench, Path file, int count) throws IOException {
        Path repository = bench.workspace().path("models-" + count);
        for (int i = 0; i < count; i++) {
            ModelRepositories.onnx(repository, "m" + i, file, JsonSection.CONFIG);
        }
        return repository;
    }

    private static Idle serve(BenchmarkRun bench, Path repository, List<String> flags)
            throws IOException, InterruptedException {
        try (NereidProcess server = NereidProcess.start(bench, new Launch(bench.installed(), repository, flags))) {
            double start = seconds(server.age());
            server.idle(IDLE); // also until the threads that loaded end
            Duration before = server.processorTime();
            server.idle(IDLE);
            double used = seconds(server.processorTime().minus(before));
            return new Idle(
                    start,
                    server.threads(),
                    server.residentBytes() / BYTES_PER_MIB,
                    PERCENT * used / IDLE.toSeconds(),
                    seconds(server.stop()));
        }
    }

    private static double seconds(Duration time) {
        return (double) time.toNanos() / TimeUnit.SECONDS.toNanos(1);
    }

    /** Adds a row. The goal is that of the most models. */
    private static void add(
            Table table,
            List<Idle> servers,
            String what,
            String format,
            ToDoubleFunction<Idle> figure,
            @Nullable Double max) {
        List<String> cells = new ArrayList<>(List.of(what));
        servers.forEach(server -> cells.add(text(format, figure.applyAsDouble(server))));
        cells.add(max == null ? "" : "<= " + text(format, max));
        cells.add(max == null ? "" : Figures.verdict(figure.applyAsDouble(servers.getLast()) <= max));
        table.add(cells.toArray(String[]::new));
    }

    /** Adds a figure of the most models, none of which is loaded. */
    private static void addOnDemand(Table table, String what, String figure) {
        List<String> cells = new ArrayList<>(List.of(what));
        COUNTS.forEach(count -> cells.add(count.equals(COUNTS.getLast()) ? figure : ""));
        cells.addAll(List.of("", ""));
        table.add(cells.toArray(String[]::new));
    }

    /** Adds the memory of each further model, and whether it stays the same. */
    private static void addGrowth(Table table, List<Idle> servers) {
        List<String> cells = new ArrayList<>(List.of("  memory of each further model", ""));
        List<Double> perModel = new ArrayList<>();
        for (int i = 1; i < servers.size(); i++) {
            double grown = servers.get(i).mebibytes() - servers.get(i - 1).mebibytes();
            perModel.add(grown / (COUNTS.get(i) - COUNTS.get(i - 1)));
            cells.add(text("%.2f MiB", perModel.getLast()));
        }
        double growth = perModel.getLast() / perModel.getFirst();
        cells.add("<= x " + text("%.2f", MAX_GROWTH));
        cells.add(Figures.verdict(growth <= MAX_GROWTH));
        table.add(cells.toArray(String[]::new));
    }

    private static String text(String format, double figure) {
        return String.format(Locale.ROOT, format, figure);
    }
}
