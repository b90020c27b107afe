package dev.nereid.benchmarks.report;

import java.io.IOException;
import java.util.Arrays;
import java.util.List;
import java.util.Locale;
import java.util.stream.Collectors;
import java.util.stream.IntStream;

/** Requests in each tenth of a second since the start of a process, 0 before the load began. Immutable. */
public record FirstMinute(List<Integer> tenths) {
    private static final String MARK = "tenths ";
    private static final int PER_SECOND = 10;

    /** Number of last seconds; their median is the final rate. */
    private static final int LAST = 10;

    private static final double SHARE = 0.9;

    /** A shorter time shows chance, a longer one the past. */
    private static final int WINDOW = 5;

    public FirstMinute {
        tenths = List.copyOf(tenths);
        if (tenths.size() < LAST * PER_SECOND || tenths.stream().noneMatch(sent -> sent > 0)) {
            throw new IllegalArgumentException(
                    "tenths: " + tenths + " (expected: requests, and " + LAST + " s or more)");
        }
    }

    /** Finds the line in the output of wrk. Omits the last second, in which the load ended. */
    public static FirstMinute in(String output) throws IOException {
        String line = output.lines()
                .filter(candidate -> candidate.startsWith(MARK))
                .findFirst()
                .orElseThrow(() -> new IOException("wrk printed no tenths: " + output.strip()));
        return new FirstMinute(Arrays.stream(line.substring(MARK.length()).split(" ", -1))
                .map(Integer::parseInt)
                .toList());
    }

    /** Returns the requests of each second since the start. */
    List<Integer> seconds() {
        return IntStream.range(0, tenths.size() / PER_SECOND)
                .mapToObj(second -> sum(second * PER_SECOND, PER_SECOND))
                .toList();
    }

    /** Returns the median of the last seconds. */
    public double finalRate() {
        List<Integer> seconds = seconds();
        return Figures.median(seconds.subList(seconds.size() - LAST, seconds.size()).stream()
                .map(Integer::doubleValue)
                .toList());
    }

    /** Returns the requests in the second that began with the first one. */
    public int firstSecond() {
        return sum(firstTenth(), PER_SECOND);
    }

    /** Returns the seconds from the start to the end of the first half second at nine tenths of the final rate. */
    public double secondsToSpeed() {
        double threshold = SHARE * finalRate() * WINDOW / PER_SECOND;
        int at = firstTenth();
        while (at < tenths.size() - WINDOW && sum(at, WINDOW) < threshold) {
            at++;
        }
        return (double) (at + WINDOW) / PER_SECOND;
    }

    /** Returns the rates of the first seconds in words. */
    public String first(int count) {
        return seconds().stream()
                .limit(count)
                .map(rate -> String.format(Locale.ROOT, "%,d", rate))
                .collect(Collectors.joining("  "));
    }

    private int firstTenth() {
        return IntStream.range(0, tenths.size())
                .filter(tenth -> tenths.get(tenth) > 0)
                .findFirst()
                .orElseThrow();
    }

    private int sum(int from, int count) {
        return tenths.subList(from, Math.min(from + count, tenths.size())).stream()
                .mapToInt(Integer::intValue)
                .sum();
    }
}
