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

    /** Checks that everything runs; the figures are those of servers that are still warming up. */
    static final Pace QUICK = new Pace(Duration.ofSeconds(3), Duration.ofSeconds(3), 1);

    /** Two builds, alternating every two seconds: a whole comparison takes less than ten minutes. */
    static final Pace COMPARED = new Pace(Duration.ofSeconds(5), Duration.ofSeconds(2), 7);

    /** Returns how long a server is watched after its start. */
    public Duration firstMinute() {
        return measured.compareTo(QUICK.measured) > 0 ? Duration.ofMinutes(1) : Duration.ofSeconds(20);
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
