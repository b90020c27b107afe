package dev.nereid.benchmarks.load;

import dev.nereid.benchmarks.report.Sample;
import java.io.IOException;
import java.util.Arrays;
import java.util.concurrent.TimeUnit;

/**
 * The line of figures that {@code post.lua} prints. Immutable.
 *
 * @param requests the number of completed requests
 * @param micros how long it took
 * @param p50Micros the median latency
 * @param p99Micros the latency that 99 of 100 kept
 * @param refused the number of responses with a status of 400 or above
 * @param broken the number of connections that could not be opened, read or written in time
 */
record WrkOutcome(long requests, long micros, long p50Micros, long p99Micros, long refused, long broken) {
    private static final String MARK = "outcome ";
    private static final int NUMBERS = 9;

    static WrkOutcome in(String output) throws IOException {
        String line = output.lines()
                .filter(candidate -> candidate.startsWith(MARK))
                .findFirst()
                .orElseThrow(() -> new IOException("wrk printed no outcome: " + output.strip()));
        long[] numbers = Arrays.stream(line.substring(MARK.length()).split(" ", -1))
                .mapToLong(Long::parseLong)
                .toArray();
        if (numbers.length != NUMBERS) {
            throw new IOException("wrk: '" + line + "' (expected: " + NUMBERS + " numbers)");
        }
        long broken = numbers[5] + numbers[6] + numbers[7] + numbers[8];
        return new WrkOutcome(numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], broken);
    }

    /** Returns the figures, if every request succeeded. */
    Sample sample(String name) throws IOException {
        if (refused > 0 || broken > 0 || requests == 0) {
            throw new IOException(name + ": of " + requests + " requests " + refused + " failed, and " + broken
                    + " connections or responses broke (expected: none of either)");
        }
        return new Sample((double) requests * TimeUnit.SECONDS.toMicros(1) / micros, p50Micros, p99Micros);
    }
}
