package dev.nereid.benchmarks.python;

import dev.nereid.api.InferenceServer;
import dev.nereid.api.ModelRef;
import dev.nereid.api.statistics.BatchStatistics;
import dev.nereid.api.statistics.ComputeTimings;
import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.Pace;
import dev.nereid.benchmarks.run.Workload;
import java.io.IOException;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.function.ToDoubleFunction;
import java.util.stream.IntStream;

/**
 * Cost of an execution of eight requests beside one of a single request, in turns. Confined to the thread that
 * measures.
 */
record BatchCost(InferenceServer server, Path repository) {
    private static final double MAX_RATIO = 3;

    /** One execution: its time by the server's statistics, and the processor time of the Python process. */
    private record Cost(double wallMicros, double pythonMicros) {}

    void measure(Workload eights, Workload ones, Pace pace, Table table) throws IOException, InterruptedException {
        eights.load(pace.warmUp());
        ones.load(pace.warmUp());
        List<Cost> eight = new ArrayList<>();
        List<Cost> single = new ArrayList<>();
        for (int round = 0; round < pace.rounds(); round++) {
            eight.add(load(eights, PythonModels.FULL, PythonModels.MAX_BATCH, pace.measured()));
            single.add(load(ones, PythonModels.IDENTITY, 1, pace.measured()));
        }
        add(table, "execution of 8 requests beside one of 1", eight, single, Cost::wallMicros);
        add(table, "the same, processor time in Python", eight, single, Cost::pythonMicros);
    }

    private Cost load(Workload load, String model, int batch, Duration time) throws IOException, InterruptedException {
        long process = PythonModels.process(repository, model);
        long python = ProcessReading.processorNanos(process);
        long nanos = nanos(model, batch);
        long all = executions(model, batch, true);
        long count = executions(model, batch, false);
        load.load(time);
        nanos = nanos(model, batch) - nanos;
        all = executions(model, batch, true) - all;
        count = executions(model, batch, false) - count;
        python = ProcessReading.processorNanos(process) - python;
        // The first and the last batches of a period may be smaller.
        if (count <= 0 || all - count > Math.max(4, all / 100)) {
            throw new IOException(
                    model + ": " + count + " of " + all + " executions of " + batch + " requests (expected: all)");
        }
        return new Cost(nanos / 1e3 / count, python / 1e3 / all);
    }

    private long executions(String model, int batch, boolean anySize) {
        return batches(model).stream()
                .filter(statistics -> anySize || statistics.batchSize() == batch)
                .mapToLong(statistics -> statistics.compute().infer().count())
                .sum();
    }

    private long nanos(String model, int batch) {
        return batches(model).stream()
                .filter(statistics -> statistics.batchSize() == batch)
                .map(BatchStatistics::compute)
                .mapToLong(BatchCost::nanos)
                .sum();
    }

    private static long nanos(ComputeTimings compute) {
        return compute.input().nanos()
                + compute.infer().nanos()
                + compute.output().nanos();
    }

    private List<BatchStatistics> batches(String model) {
        return server.models()
                .statistics(ModelRef.latest(model))
                .getFirst()
                .executions()
                .batches();
    }

    private static void add(
            Table table, String what, List<Cost> eight, List<Cost> single, ToDoubleFunction<Cost> figure) {
        double ratio = Figures.median(IntStream.range(0, eight.size())
                .mapToObj(i -> figure.applyAsDouble(eight.get(i)) / figure.applyAsDouble(single.get(i)))
                .toList());
        table.add(
                what,
                "",
                median(eight, figure) + ", " + median(single, figure),
                "",
                Figures.ratio(ratio),
                "< " + Figures.ratio(MAX_RATIO),
                Figures.verdict(ratio < MAX_RATIO));
    }

    private static String median(List<Cost> costs, ToDoubleFunction<Cost> figure) {
        double median = Figures.median(
                costs.stream().map(cost -> figure.applyAsDouble(cost)).toList());
        return String.format(Locale.ROOT, "%.0f us", median);
    }
}
