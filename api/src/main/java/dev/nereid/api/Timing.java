package dev.nereid.api;

/**
 * How often something happened, and how long that took in all. Immutable.
 *
 * @param count how often
 * @param nanos the sum of the durations, in nanoseconds
 */
public record Timing(long count, long nanos) {
    /** It never happened. */
    public static final Timing NONE = new Timing(0, 0);
}
