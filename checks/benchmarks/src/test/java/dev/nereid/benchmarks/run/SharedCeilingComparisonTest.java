package dev.nereid.benchmarks.run;

import static org.assertj.core.api.Assertions.assertThat;

import dev.nereid.benchmarks.report.Goal;
import dev.nereid.benchmarks.report.Sample;
import dev.nereid.benchmarks.report.Table;
import dev.nereid.benchmarks.run.SharedCeilingComparison.Subject;
import java.io.IOException;
import java.time.Duration;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Deque;
import java.util.List;
import org.junit.jupiter.api.Test;

final class SharedCeilingComparisonTest {
    private final List<String> order = new ArrayList<>();

    @Test
    void startsEachRoundWithAnotherWorkload() throws IOException, InterruptedException {
        SharedCeilingComparison contest = new SharedCeilingComparison(
                List.of(
                        new Subject(contender("a", 1, 1, 1), Goal.none()),
                        new Subject(contender("b", 1, 1, 1), Goal.none())),
                contender("echo", 2, 2, 2));

        contest.run(new Pace(Duration.ofSeconds(7), Duration.ofSeconds(2), 2), CeilingComparison.table("title"));

        assertThat(order)
                .containsExactly(
                        "a 7 s", "b 7 s", "echo 7 s", "a 2 s", "b 2 s", "echo 2 s", "b 2 s", "echo 2 s", "a 2 s");
    }

    @Test
    void comparesEachWithTheCeilingOfTheSameRound() throws IOException, InterruptedException {
        Table table = CeilingComparison.table("title");
        SharedCeilingComparison contest = new SharedCeilingComparison(
                List.of(
                        new Subject(contender("a", 9_999, 100, 600, 300), new Goal.RateAtLeast(0.5)),
                        new Subject(contender("b", 9_999, 100, 120, 300), new Goal.RateAtLeast(0.5))),
                contender("echo", 9_999, 1_000, 1_200, 400));

        contest.run(new Pace(Duration.ofSeconds(7), Duration.ofSeconds(2), 3), table);

        assertThat(table.text().lines().skip(2))
                .satisfiesExactly(
                        a -> assertThat(a).startsWith("a ").containsSubsequence("300/s", "0.50 x", ">= 0.50 x", "met"),
                        b -> assertThat(b).startsWith("b ").containsSubsequence("120/s", "0.10 x", "MISSED"),
                        echo -> assertThat(echo).startsWith("  echo").contains("1,000/s"));
    }

    @Test
    void alternatesEveryTwoSecondsAndWarmsUpLong() {
        Pace pace = new Pace(Duration.ofSeconds(10), Duration.ofSeconds(10), 3).inTurns(Duration.ofSeconds(20));

        assertThat(pace).isEqualTo(new Pace(Duration.ofSeconds(20), Duration.ofSeconds(2), 15));
        assertThat(Pace.QUICK.inTurns(Duration.ofSeconds(20)))
                .isEqualTo(new Pace(Duration.ofSeconds(3), Duration.ofSeconds(1), 3));
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
