package dev.nereid.benchmarks.run;

import java.time.Duration;

/**
 * Durations and rounds of a measurement. Immutable.
 *
 * @param warmUp the load that is not counted, once for each contender of a contest
 * @param measured the load that is counted, in each round
 * @param rounds how often each workload of a comparison is measured, in rotation with the others
 */
public record Pace(Duration warmUp, Duration measured, int rounds) {
    /** A cold JVM needs some ten seconds of load to reach its speed. */
    static final Pace DEFAULT = new Pace(Duration.ofSeconds(10), Duration.ofSeconds(10), 1);

    /** Checks that everything runs; the servers still warm up when their figures are measured. */
    static final Pace QUICK = new Pace(Duration.ofSeconds(3), Duration.ofSeconds(3), 1);

    /** Two builds, alternating every two seconds: a whole comparison takes less than ten minutes. */
    static final Pace COMPARED = new Pace(Duration.ofSeconds(5), Duration.ofSeconds(2), 7);

    private static final Duration TURN = Duration.ofSeconds(2);
    private static final Duration QUICK_TURN = Duration.ofSeconds(1);

    /** Returns how long a server is watched after its start. */
    public Duration firstMinute() {
        return isQuick() ? Duration.ofSeconds(20) : Duration.ofMinutes(1);
    }

    /** Returns whether a run only checks that everything works; figures may come from code that is not compiled yet. */
    public boolean isQuick() {
        return measured.compareTo(QUICK.measured) <= 0;
    }

    /**
     * Returns as much load in shorter turns, so that workloads alternate often.
     *
     * @param leastWarmUp the shortest warm-up, but for a quick run
     */
    public Pace inTurns(Duration leastWarmUp) {
        Duration turn = isQuick() ? QUICK_TURN : TURN;
        Duration warm = isQuick() || warmUp.compareTo(leastWarmUp) > 0 ? warmUp : leastWarmUp;
        return new Pace(
                warm,
                turn,
                Math.toIntExact(Math.max(1, measured.multipliedBy(rounds).dividedBy(turn))));
    }

    public Pace {
        if (warmUp.toSeconds() < 1) {
            throw new IllegalArgumentException("warm-up: " + warmUp.toSeconds() + " s (expected: >= 1 s)");
        }
        if (measured.toSeconds() < 1) {
            throw new IllegalArgumentException("measured: " + measured.toSeconds() + " s (expected: >= 1 s)");
        }
        if (rounds < 1) {
            throw new IllegalArgumentException("rounds: " + rounds + " (expected: >= 1)");
        }
    }
}
