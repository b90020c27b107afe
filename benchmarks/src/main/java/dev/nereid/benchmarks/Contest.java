package dev.nereid.benchmarks;

import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.IntStream;

/**
 * One thing measured beside the ceilings that bound it. Immutable; run on the thread that measures.
 *
 * @param subject what is measured
 * @param ceilings what it is compared with
 */
record Contest(Contender subject, List<Ceiling> ceilings) {
    /**
     * A bound, and how near to it the subject should come.
     *
     * @param contender what bounds the subject
     * @param goal what the subject is to reach
     */
    record Ceiling(Contender contender, Goal goal) {}

    /** A table that takes contests. */
    static Table table(String title) {
        return new Table(title, "WHAT", "THROUGHPUT", "P50", "P99", "SERVER/CEILING", "TARGET", "");
    }

    Contest {
        ceilings = List.copyOf(ceilings);
    }

    /**
     * Warms everything up, then measures all in turn, round after round, so that a slow period of the machine hits all
     * alike. Blocks.
     *
     * @param pace how long
     * @param table takes a row for the subject, and one for each ceiling
     */
    void run(Pace pace, Table table) throws IOException, InterruptedException {
        List<Contender> all = new ArrayList<>(List.of(subject));
        ceilings.forEach(ceiling -> all.add(ceiling.contender()));
        for (Contender contender : all) {
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
            // Compared within a round, not across: what slows the machine down slows both.
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

    private static Sample middle(List<Sample> samples) {
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
