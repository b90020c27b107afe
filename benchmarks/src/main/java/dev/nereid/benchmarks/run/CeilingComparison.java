package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * Compares a workload with the ceilings that bound it. Immutable; run on the thread that measures.
 *
 * @param ceilings the upper bounds for comparison
 */
public record CeilingComparison(Workload subject, List<Ceiling> ceilings) {
    /**
     * A ceiling, and the goal of the workload relative to it.
     *
     * @param contender the workload that bounds the subject
     * @param goal the goal of the subject
     */
    public record Ceiling(Workload contender, Goal goal) {}

    /** A table that takes contests. */
    public static Table table(String title) {
        return new Table(title, "WHAT", "THROUGHPUT", "P50", "P99", "SERVER/CEILING", "TARGET", "");
    }

    public CeilingComparison {
        ceilings = List.copyOf(ceilings);
    }

    /**
     * Warms everything up, then measures all in rotation, round after round. A slow period of the machine therefore
     * affects all equally. Blocks.
     *
     * @param pace how long
     * @param table takes a row for the subject, and one for each ceiling
     */
    void run(Pace pace, Table table) throws IOException, InterruptedException {
        List<Workload> all = new ArrayList<>(List.of(subject));
        ceilings.forEach(ceiling -> all.add(ceiling.contender()));
        for (Workload contender : all) {
            contender.load(pace.warmUp());
        }
        List<List<Sample>> samples = all.stream()
                .map(contender -> (List<Sample>) new ArrayList<Sample>())
                .toList();
        for (int round = 0; round < pace.rounds(); round++) {
            for (int i = 0; i < all.size(); i++) {
                samples.get(i).add(all.get(i).load(pace.measured()));
            }
        }
        addRows(table, samples);
    }

    private void addRows(Table table, List<List<Sample>> samples) {
        List<Sample> own = samples.getFirst();
        Sample middle = middle(own);
        table.add(subject.name(), rate(middle), p50(middle), p99(middle), "", "", "");
        for (int i = 0; i < ceilings.size(); i++) {
            Ceiling ceiling = ceilings.get(i);
            List<Sample> bound = samples.get(i + 1);
            // Compared within a round, not across: a slow period of the machine affects both.
            double comparison = Figures.median(IntStream.range(0, own.size())
                    .mapToObj(round -> ceiling.goal().compare(own.get(round), bound.get(round)))
                    .toList());
            Sample of = middle(bound);
            Goal goal = ceiling.goal();
            table.add(
                    "  " + ceiling.contender().name(),
                    rate(of),
                    p50(of),
                    p99(of),
                    goal.show(comparison),
                    goal.target(),
                    goal.verdict(comparison));
        }
    }

    /** Returns the medians of samples. */
    public static Sample middle(List<Sample> samples) {
        return new Sample(
                Figures.median(samples.stream().map(Sample::perSecond).toList()),
                Figures.median(samples.stream().map(Sample::p50Micros).toList()),
                Figures.median(samples.stream().map(Sample::p99Micros).toList()));
    }

    private static String rate(Sample sample) {
        return Figures.rate(sample.perSecond());
    }

    private static String p50(Sample sample) {
        return Figures.latency(sample.p50Micros());
    }

    private static String p99(Sample sample) {
        return Figures.latency(sample.p99Micros());
    }
}
