package dev.nereid.benchmarks.run;

import dev.nereid.benchmarks.report.Figures;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.stream.IntStream;

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

    /** Warms all up, then measures them in rotation, each round starting with another one. Blocks. */
    public void run(Pace pace, Table table) throws IOException, InterruptedException {
        List<Workload> all = List.of(fresh, old, repeated);
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
        double change = ratio(samples.get(0), samples.get(1));
        double chance = ratio(samples.get(2), samples.get(1));
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

    /** Compared within a round, not across: a slow period of the machine affects both. */
    private static double ratio(List<Sample> subject, List<Sample> reference) {
        return Figures.median(IntStream.range(0, subject.size())
                .mapToObj(round ->
                        subject.get(round).perSecond() / reference.get(round).perSecond())
                .toList());
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
