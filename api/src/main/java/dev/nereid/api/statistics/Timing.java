package dev.nereid.api.statistics;

/**
 * Number of occurrences of an event and their total duration. Immutable.
 *
 * @param count the number of occurrences
 * @param nanos the sum of the durations, in nanoseconds
 */
public record Timing(long count, long nanos) {
    /** No occurrence. */
    public static final Timing NONE = new Timing(0, 0);
}
