package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;
import java.util.stream.Stream;

/**
 * Compares workloads with one ceiling that bounds each of them. Immutable; run on the thread that measures.
 *
 * @param ceiling the upper bound for comparison
 */
public record SharedCeilingComparison(List<Subject> subjects, Workload ceiling) {
    /** A measured workload, and its goal relative to the ceiling. */
    public record Subject(Workload contender, Goal goal) {}

    public SharedCeilingComparison {
        subjects = List.copyOf(subjects);
    }

    /**
     * Warms everything up, then measures all in rotation, round after round, each round starting with another one. Blocks.
     *
     * @param pace how long
     * @param table takes a row for each subject with its ratio, and then one for the ceiling
     */
    public void run(Pace pace, Table table) throws IOException, InterruptedException {
        List<Workload> all = Stream.concat(subjects.stream().map(Subject::contender), Stream.of(ceiling))
                .toList();
        for (Workload contender : all) {
            contender.load(pace.warmUp());
        }
        List<List<Sample>> samples = all.stream()
                .map(contender -> (List<Sample>) new ArrayList<Sample>())
                .toList();
        for (int round = 0; round < pace.rounds(); round++) {
            for (int i = 0; i < all.size(); i++) {
                int at = (round + i) % all.size();
                samples.get(at).add(all.get(at).load(pace.measured()));
            }
        }
        List<Sample> bound = samples.getLast();
        for (int i = 0; i < subjects.size(); i++) {
            addRow(table, subjects.get(i), samples.get(i), bound);
        }
        Sample of = CeilingComparison.middle(bound);
        table.add(
                "  " + ceiling.name(),
                Figures.rate(of.perSecond()),
                Figures.latency(of.p50Micros()),
                Figures.latency(of.p99Micros()),
                "",
                "",
                "");
    }

    private static void addRow(Table table, Subject subject, List<Sample> own, List<Sample> bound) {
        Goal goal = subject.goal();
        // Compared within a round, not across: a slow period of the machine affects all.
        double comparison = Figures.median(IntStream.range(0, own.size())
                .mapToObj(round -> goal.compare(own.get(round), bound.get(round)))
                .toList());
        Sample middle = CeilingComparison.middle(own);
        table.add(
                subject.contender().name(),
                Figures.rate(middle.perSecond()),
                Figures.latency(middle.p50Micros()),
                Figures.latency(middle.p99Micros()),
                goal.show(comparison),
                goal.target(),
                goal.verdict(comparison));
    }
}
