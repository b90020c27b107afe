package dev.nereid.benchmarks.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.CeilingComparison.Ceiling;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;

final class CeilingComparisonTest {
    private static final Pace PACE = new Pace(Duration.ofSeconds(7), Duration.ofSeconds(2), 3);

    private final List<String> order = new ArrayList<>();

    @Test
    void warmsAllUpOnceAndThenMeasuresRoundRobin() throws IOException, InterruptedException {
        CeilingComparison contest = new CeilingComparison(
                contender("server", 1, 1, 1, 1), List.of(new Ceiling(contender("echo", 2, 2, 2, 2), Goal.none())));

        contest.run(PACE, CeilingComparison.table("title"));

        assertThat(order)
                .containsExactly(
                        "server 7 s",
                        "echo 7 s",
                        "server 2 s",
                        "echo 2 s",
                        "server 2 s",
                        "echo 2 s",
                        "server 2 s",
                        "echo 2 s");
    }

    @Test
    void comparesWithinARoundAndTakesTheMiddleRound() throws IOException, InterruptedException {
        Table table = CeilingComparison.table("title");
        CeilingComparison contest = new CeilingComparison(
                contender("server", 9_999, 100, 600, 300),
                List.of(new Ceiling(contender("echo", 9_999, 1_000, 1_200, 400), new Goal.RateAtLeast(0.5))));

        contest.run(PACE, table);

        // Rounds: 0.1, 0.5 and 0.75. The middle rates, 300 and 1,000, are of different rounds.
        assertThat(table.text().lines().skip(2))
                .satisfiesExactly(
                        server -> assertThat(server).startsWith("server").contains("300/s"),
                        echo -> assertThat(echo)
                                .startsWith("  echo")
                                .containsSubsequence("1,000/s", "0.50 x", ">= 0.50 x", "met"));
    }

    /** Returns the given rates, the first one for the warm-up. */
    private Workload contender(String name, double... rates) {
        Deque<Sample> samples = new ArrayDeque<>();
        for (double rate : rates) {
            samples.add(new Sample(rate, 1_000, 2_000));
        }
        return new Workload() {
            @Override
            public String name() {
                return name;
            }

            @Override
            public Sample load(Duration time) {
                order.add(name + " " + time.toSeconds() + " s");
                return samples.pop();
            }
        };
    }
}
