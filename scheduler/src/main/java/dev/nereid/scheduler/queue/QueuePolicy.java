package dev.nereid.scheduler.queue;

import static java.util.Objects.requireNonNull;

/**
 * Time-out and size limit of one priority level. Immutable.
 *
 * @param action what happens when the time of a request is over
 * @param defaultTimeoutNanos how long a request may wait that asks for nothing else, in nanoseconds; 0 for any time
 * @param allowOverride whether a request may ask for less
 * @param maxQueueSize how many requests may wait, delayed ones included; 0 for any number
 */
public record QueuePolicy(TimeoutAction action, long defaultTimeoutNanos, boolean allowOverride, long maxQueueSize) {
    /** No time-out and no bound. */
    public static final QueuePolicy NONE = new QueuePolicy(TimeoutAction.REJECT, 0, false, 0);

    private static final long NANOS_PER_MICRO = 1_000;

    /** The action at the time-out of a waiting request. */
    public enum TimeoutAction {
        /** It is answered with an error. */
        REJECT,
        /** It waits on, behind all others of its level whose time is not over. */
        DELAY
    }

    /** Checks the components. */
    public QueuePolicy {
        requireNonNull(action, "action");
        if (defaultTimeoutNanos < 0) {
            throw new IllegalArgumentException("defaultTimeoutNanos: " + defaultTimeoutNanos + " (expected: >= 0)");
        }
        if (maxQueueSize < 0) {
            throw new IllegalArgumentException("maxQueueSize: " + maxQueueSize + " (expected: >= 0)");
        }
    }

    /**
     * Returns how long a request may wait. A request that may ask for a time of its own never gets more than the
     * default; a default of 0 counts as unlimited.
     *
     * @param requestedMicros what the request asks for, in microseconds, unsigned; 0 for nothing
     * @return the time in nanoseconds, cut to what fits; 0 for any time
     */
    public long timeoutNanos(long requestedMicros) {
        if (!allowOverride || requestedMicros == 0) {
            return defaultTimeoutNanos;
        }
        boolean fits = Long.compareUnsigned(requestedMicros, Long.MAX_VALUE / NANOS_PER_MICRO) <= 0;
        long requested = fits ? requestedMicros * NANOS_PER_MICRO : Long.MAX_VALUE;
        return defaultTimeoutNanos == 0 ? requested : Math.min(requested, defaultTimeoutNanos);
    }

    /**
     * Says whether one more request may wait.
     *
     * @param waiting how many wait
     * @return whether that is below the bound
     */
    public boolean admits(long waiting) {
        return maxQueueSize == 0 || waiting < maxQueueSize;
    }
}
