package dev.nereid.benchmarks.report;

import java.util.List;
import java.util.Locale;
import java.util.concurrent.TimeUnit;

/** Formats figures for tables. */
public final class Figures {
    /** From here on a rate is shown without, and a time with one, decimal place. */
    private static final int MANY = 100;

    private Figures() {}

    public static String rate(double perSecond) {
        return String.format(Locale.ROOT, perSecond < MANY ? "%.1f/s" : "%,.0f/s", perSecond);
    }

    public static String latency(double micros) {
        if (micros < TimeUnit.MILLISECONDS.toMicros(1)) {
            return String.format(Locale.ROOT, "%.0f us", micros);
        }
        double millis = micros / TimeUnit.MILLISECONDS.toMicros(1);
        return String.format(Locale.ROOT, millis < MANY ? "%.2f ms" : "%.0f ms", millis);
    }

    public static String ratio(double ratio) {
        return String.format(Locale.ROOT, "%.2f x", ratio);
    }

    public static String verdict(boolean met) {
        return met ? "met" : "MISSED";
    }

    /** Returns the median of some numbers. It is the mean of the two middle ones if their count is even. */
    public static double median(List<Double> numbers) {
        if (numbers.isEmpty()) {
            throw new IllegalArgumentException("numbers: none (expected: at least one)");
        }
        List<Double> sorted = numbers.stream().sorted().toList();
        int middle = sorted.size() / 2;
        return sorted.size() % 2 == 1 ? sorted.get(middle) : (sorted.get(middle - 1) + sorted.get(middle)) / 2;
    }
}
