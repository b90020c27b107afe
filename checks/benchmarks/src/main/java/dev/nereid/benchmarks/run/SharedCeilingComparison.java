package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import java.io.IOException;
import java.util.List;
import java.util.stream.Stream;

/** Compares workloads with one ceiling that bounds each of them. Immutable; run on the thread that measures. */
public record SharedCeilingComparison(List<Subject> subjects, Workload ceiling) {
    /** A measured workload, and its goal relative to the ceiling. */
    public record Subject(Workload contender, Goal goal) {}

    public SharedCeilingComparison {
        subjects = List.copyOf(subjects);
    }

    /** Measures all in rotation. Blocks. The table gets each subject with its ratio, and then the ceiling. */
    public void run(Pace pace, Table table) throws IOException, InterruptedException {
        List<Workload> all = Stream.concat(subjects.stream().map(Subject::contender), Stream.of(ceiling))
                .toList();
        List<List<Sample>> samples = Rounds.measure(all, pace, true);
        List<Sample> bound = samples.getLast();
        for (int i = 0; i < subjects.size(); i++) {
            Subject subject = subjects.get(i);
            double comparison = Rounds.compare(subject.goal(), samples.get(i), bound);
            Rounds.addRow(table, subject.contender().name(), samples.get(i), subject.goal(), comparison);
        }
        Rounds.addRow(table, "  " + ceiling.name(), bound);
    }
}
