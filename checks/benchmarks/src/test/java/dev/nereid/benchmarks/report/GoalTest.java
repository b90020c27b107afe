package dev.nereid.benchmarks.report;

import static org.assertj.core.api.Assertions.assertThat;
import static org.assertj.core.api.Assertions.within;

import java.time.Duration;
import org.junit.jupiter.api.Test;

final class GoalTest {
    private static final Sample CEILING = new Sample(1_000, 2_000, 9_000);

    @Test
    void rateIsMetFromItsShareOn() {
        Goal goal = new Goal.RateAtLeast(0.5);

        double half = goal.compare(new Sample(500, 1, 1), CEILING);
        double less = goal.compare(new Sample(499, 1, 1), CEILING);

        assertThat(half).isEqualTo(0.5);
        assertThat(goal.verdict(half)).isEqualTo("met");
        assertThat(goal.verdict(less)).isEqualTo("MISSED");
        assertThat(goal.target()).isEqualTo(">= 0.50 x");
        assertThat(goal.show(half)).isEqualTo("0.50 x");
    }

    @Test
    void latencyIsMetUpToItsExtraAtTheMedian() {
        Goal goal = new Goal.LatencyWithin(Duration.ofNanos(500_000));

        double within = goal.compare(new Sample(1, 2_500, 90_000), CEILING);
        double beyond = goal.compare(new Sample(1, 2_501, 9_000), CEILING);

        assertThat(within).isCloseTo(500, within(1e-9));
        assertThat(goal.verdict(within)).isEqualTo("met");
        assertThat(goal.verdict(beyond)).isEqualTo("MISSED");
        assertThat(goal.target()).isEqualTo("<= +0.50 ms");
        assertThat(goal.show(within)).isEqualTo("p50 +0.50 ms");
    }

    @Test
    void latencyBelowTheCeilingIsMet() {
        Goal goal = new Goal.LatencyWithin(Duration.ofMillis(1));

        double comparison = goal.compare(new Sample(1, 1_000, 1_000), CEILING);

        assertThat(goal.show(comparison)).isEqualTo("p50 -1.00 ms");
        assertThat(goal.verdict(comparison)).isEqualTo("met");
    }

    @Test
    void groupsOfRequestsCountAsOne() {
        Goal goal = new Goal.RateOfGroups(4, 2);

        double enough = goal.compare(new Sample(500, 1, 1), CEILING);
        double less = goal.compare(new Sample(499, 1, 1), CEILING);

        assertThat(goal.verdict(enough)).isEqualTo("met");
        assertThat(goal.verdict(less)).isEqualTo("MISSED");
        assertThat(goal.show(enough)).isEqualTo("2.00 x a group of 4");
        assertThat(goal.target()).isEqualTo(">= 2.00 x");
    }

    @Test
    void latencyOfStepsIsSharedByThem() {
        Goal goal = new Goal.LatencyOfSteps(4, Duration.ofNanos(1_500));

        double within = goal.compare(new Sample(1, 2_006, 1), CEILING);
        double beyond = goal.compare(new Sample(1, 2_006.1, 1), CEILING);

        assertThat(goal.verdict(within)).isEqualTo("met");
        assertThat(goal.verdict(beyond)).isEqualTo("MISSED");
        assertThat(goal.show(within)).isEqualTo("p50 +1.50 us a step");
        assertThat(goal.target()).isEqualTo("<= +1.50 us");
    }

    @Test
    void noGoalOnlyShowsTheRatio() {
        double comparison = Goal.none().compare(new Sample(250, 1, 1), CEILING);

        assertThat(Goal.none().show(comparison)).isEqualTo("0.25 x");
        assertThat(Goal.none().verdict(comparison)).isEmpty();
    }
}
