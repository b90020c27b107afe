package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;

/** Compares a workload with the ceilings that bound it. Immutable; run on the thread that measures. */
public record CeilingComparison(Workload subject, List<Ceiling> ceilings) {
    /** A workload that bounds the subject, and the goal of that relative to it. */
    public record Ceiling(Workload contender, Goal goal) {}

    public static Table table(String title) {
        return new Table(title, "WHAT", "THROUGHPUT", "P50", "P99", "SERVER/CEILING", "TARGET", "");
    }

    public CeilingComparison {
        ceilings = List.copyOf(ceilings);
    }

    /** Measures all in rotation. Blocks. The table gets a row for the subject, and one for each ceiling. */
    void run(Pace pace, Table table) throws IOException, InterruptedException {
        List<Workload> all = new ArrayList<>(List.of(subject));
        ceilings.forEach(ceiling -> all.add(ceiling.contender()));
        List<List<Sample>> samples = Rounds.measure(all, pace, false);
        List<Sample> own = samples.getFirst();
        Rounds.addRow(table, subject.name(), own);
        for (int i = 0; i < ceilings.size(); i++) {
            Ceiling ceiling = ceilings.get(i);
            List<Sample> bound = samples.get(i + 1);
            double comparison = Rounds.compare(ceiling.goal(), own, bound);
            Rounds.addRow(table, "  " + ceiling.contender().name(), bound, ceiling.goal(), comparison);
        }
    }

    public static Sample middle(List<Sample> samples) {
        return new Sample(
                Figures.median(samples.stream().map(Sample::perSecond).toList()),
                Figures.median(samples.stream().map(Sample::p50Micros).toList()),
                Figures.median(samples.stream().map(Sample::p99Micros).toList()));
    }
}
