package dev.nereid.scheduler.queue;

import static java.util.Objects.requireNonNull;

/**
 * Timeout and size limit of one priority level. Immutable.
 *
 * @param action the action when the timeout of a request expires
 * @param defaultTimeoutNanos the timeout of requests without their own, in nanoseconds; 0 for none
 * @param allowOverride whether a request may set a shorter timeout
 * @param maxQueueSize the maximum number of waiting requests, delayed ones included; 0 for no limit
 */
public record QueuePolicy(TimeoutAction action, long defaultTimeoutNanos, boolean allowOverride, long maxQueueSize) {
    /** No timeout and no size limit. */
    public static final QueuePolicy NONE = new QueuePolicy(TimeoutAction.REJECT, 0, false, 0);

    private static final long NANOS_PER_MICRO = 1_000;

    /** The action at the timeout of a waiting request. */
    public enum TimeoutAction {
        /** The request completes with an error. */
        REJECT,
        /** The request waits on, behind all requests of its level that are not expired. */
        DELAY
    }

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
     * Returns the timeout of a request. A timeout set by a request never exceeds the default; a default of 0 counts as
     * unlimited.
     *
     * @param requestedMicros the timeout set by the request, in microseconds, unsigned; 0 for none
     * @return the timeout in nanoseconds, at most {@link Long#MAX_VALUE}; 0 for none
     */
    public long timeoutNanos(long requestedMicros) {
        if (!allowOverride || requestedMicros == 0) {
            return defaultTimeoutNanos;
        }
        boolean fits = Long.compareUnsigned(requestedMicros, Long.MAX_VALUE / NANOS_PER_MICRO) <= 0;
        long requested = fits ? requestedMicros * NANOS_PER_MICRO : Long.MAX_VALUE;
        return defaultTimeoutNanos == 0 ? requested : Math.min(requested, defaultTimeoutNanos);
    }

    /** Returns whether one more request may wait beside the waiting ones. */
    public boolean admits(long waiting) {
        return maxQueueSize == 0 || waiting < maxQueueSize;
    }
}
