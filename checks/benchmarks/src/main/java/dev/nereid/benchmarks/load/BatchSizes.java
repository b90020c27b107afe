package dev.nereid.benchmarks.load;

import static java.util.stream.Collectors.joining;

import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.run.Workload;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;

/**
 * A workload that reads its mean batches from the statistics of models, for the last period of load. Confined to the
 * thread that measures.
 */
public final class BatchSizes implements Workload {
    /** Reads the number of executions of each batch size of a model. */
    public interface Reader {
        /** Returns the number of a model's executions, by the size of their batches, from its statistics. */
        Map<Long, Long> executions(String model) throws IOException;
    }

    private final Workload load;
    private final List<String> models;
    private final Reader reader;
    private List<Double> means = List.of();

    /** Wraps a workload on models; the reader reads their statistics. */
    public BatchSizes(Workload load, List<String> models, Reader reader) {
        this.load = load;
        this.models = List.copyOf(models);
        this.reader = reader;
    }

    @Override
    public String name() {
        return load.name();
    }

    @Override
    public Sample load(Duration time) throws IOException, InterruptedException {
        List<Map<Long, Long>> before = read();
        Sample sample = load.load(time);
        List<Map<Long, Long>> after = read();
        List<Double> found = new ArrayList<>();
        for (int i = 0; i < after.size(); i++) {
            found.add(mean(before.get(i), after.get(i)));
        }
        means = List.copyOf(found);
        return sample;
    }

    private List<Map<Long, Long>> read() throws IOException {
        List<Map<Long, Long>> all = new ArrayList<>();
        for (String model : models) {
            all.add(reader.executions(model));
        }
        return all;
    }

    private static double mean(Map<Long, Long> before, Map<Long, Long> after) throws IOException {
        Map<Long, Long> executions = new HashMap<>(after);
        before.forEach((size, count) -> executions.merge(size, -count, Long::sum));
        long count = executions.values().stream().mapToLong(Long::longValue).sum();
        if (count <= 0) {
            throw new IOException("batch_stats: no executions (expected: some)");
        }
        return (double) executions.entrySet().stream()
                        .mapToLong(entry -> entry.getKey() * entry.getValue())
                        .sum()
                / count;
    }

    public double smallest() {
        return means.stream().mapToDouble(Double::doubleValue).min().orElse(0);
    }

    /** Returns the mean batch of each model in words. */
    public String text() {
        return means.stream()
                .map(mean -> String.format(Locale.ROOT, "%.1f", mean))
                .collect(joining(", "));
    }
}
