package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/** Measures the workloads of a comparison in rotation, and writes its rows. Stateless. */
final class Rounds {
    private Rounds() {}

    /**
     * Warms all up, then measures them in rotation, round after round. A slow period of the machine therefore affects
     * all equally. Blocks.
     *
     * @param isFirstChanging whether each round starts with another workload
     * @return the samples of each workload, one for each round
     */
    static List<List<Sample>> measure(List<Workload> all, Pace pace, boolean isFirstChanging)
            throws IOException, InterruptedException {
        for (Workload workload : all) {
            workload.load(pace.warmUp());
        }
        List<List<Sample>> samples = all.stream()
                .map(workload -> (List<Sample>) new ArrayList<Sample>())
                .toList();
        for (int round = 0; round < pace.rounds(); round++) {
            for (int i = 0; i < all.size(); i++) {
                int at = isFirstChanging ? (round + i) % all.size() : i;
                samples.get(at).add(all.get(at).load(pace.measured()));
            }
        }
        return samples;
    }

    /** Compares within a round, not across: a slow period of the machine affects both. */
    static double compare(Goal goal, List<Sample> subject, List<Sample> ceiling) {
        return Figures.median(IntStream.range(0, subject.size())
                .mapToObj(round -> goal.compare(subject.get(round), ceiling.get(round)))
                .toList());
    }

    /** Adds the medians of a workload, without a goal. */
    static void addRow(Table table, String name, List<Sample> samples) {
        addRow(table, name, samples, "", "", "");
    }

    static void addRow(Table table, String name, List<Sample> samples, Goal goal, double comparison) {
        addRow(table, name, samples, goal.show(comparison), goal.target(), goal.verdict(comparison));
    }

    private static void addRow(
            Table table, String name, List<Sample> samples, String shown, String target, String verdict) {
        Sample middle = CeilingComparison.middle(samples);
        table.add(
                name,
                Figures.rate(middle.perSecond()),
                Figures.latency(middle.p50Micros()),
                Figures.latency(middle.p99Micros()),
                shown,
                target,
                verdict);
    }
}
