package dev.nereid.scheduler;

import dev.nereid.scheduler.queue.QueuePolicy;

/**
 * The expected state of a request. Immutable.
 *
 * @param index its index among the requests to its model, and its id
 * @param level its level of priority
 * @param policy the policy of that level
 * @param arrival when it came, in nanoseconds
 * @param items its items
 * @param width the width of its input
 * @param options its scheduling options
 */
public record ExpectedRequest(
        int index, long level, QueuePolicy policy, long arrival, int items, int width, Options options) {
    /** The time to the deadline of a request that has one. */
    static final long DEADLINE_NANOS = 1_000;

    /** Scheduling options of a request. */
    public record Options(boolean hasDeadline, int priority, int timeoutMicros) {}

    /** Returns whether its queue timeout has expired. */
    boolean isTimedOut(long now) {
        long timeout = policy.timeoutNanos(options.timeoutMicros());
        return timeout > 0 && now - arrival > timeout;
    }

    boolean isDelayed(long now) {
        return isTimedOut(now) && policy.action() == QueuePolicy.TimeoutAction.DELAY;
    }

    /** Returns whether it must not be executed any more. */
    boolean isDead(long now) {
        return (options.hasDeadline() && now - arrival >= DEADLINE_NANOS) || (isTimedOut(now) && !isDelayed(now));
    }

    /** Returns whether it has to go before another waiting request. */
    boolean goesBefore(ExpectedRequest other, long now) {
        if (level != other.level) {
            return level < other.level;
        }
        if (isDelayed(now) != other.isDelayed(now)) {
            return other.isDelayed(now);
        }
        return isDelayed(now) ? expiresAt() - other.expiresAt() < 0 : index < other.index;
    }

    private long expiresAt() {
        return arrival + policy.timeoutNanos(options.timeoutMicros());
    }
}
