package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import java.io.IOException;
import java.util.List;
import java.util.Locale;

/**
 * Compares one workload on a new build and on two processes of an old build. The difference between the old processes
 * shows the noise of a figure. Immutable; run on the thread that measures.
 *
 * @param repeated another process of the old build
 */
public record BuildComparison(Workload fresh, Workload old, Workload repeated) {
    /** Allowed loss of a figure, if the old build differs from itself by less. */
    private static final double ALLOWED = 0.03;

    /** A table that takes comparisons. */
    public static Table table() {
        return new Table(
                "New build beside the old one", "WHAT", "OLD", "NEW", "NEW/OLD", "OLD/OLD", "P99 OLD", "P99 NEW", "");
    }

    /** Measures all in rotation. Blocks. */
    public void run(Pace pace, Table table) throws IOException, InterruptedException {
        List<List<Sample>> samples = Rounds.measure(List.of(fresh, old, repeated), pace, true);
        double change = Rounds.compare(Goal.none(), samples.get(0), samples.get(1));
        double chance = Rounds.compare(Goal.none(), samples.get(2), samples.get(1));
        table.add(
                fresh.name(),
                Figures.rate(rate(samples.get(1))),
                Figures.rate(rate(samples.get(0))),
                percent(change),
                percent(chance),
                Figures.latency(p99(samples.get(1))),
                Figures.latency(p99(samples.get(0))),
                Figures.verdict(isKept(change, chance)));
    }

    /** Returns whether a figure is kept, given how the old build compares with itself. */
    static boolean isKept(double change, double chance) {
        return 1 - change <= Math.max(ALLOWED, Math.abs(1 - chance));
    }

    private static double rate(List<Sample> samples) {
        return Figures.median(samples.stream().map(Sample::perSecond).toList());
    }

    private static double p99(List<Sample> samples) {
        return Figures.median(samples.stream().map(Sample::p99Micros).toList());
    }

    private static String percent(double ratio) {
        return String.format(Locale.ROOT, "%+.1f %%", (ratio - 1) * 100);
    }
}
