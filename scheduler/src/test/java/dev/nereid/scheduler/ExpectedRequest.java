package dev.nereid.scheduler;

import dev.nereid.scheduler.queue.QueuePolicy;

/**
 * What a test knows of a call. Immutable.
 *
 * @param index its place among the calls to its model, and its id
 * @param level its level of priority
 * @param policy the policy of that level
 * @param arrival when it came, in nanoseconds
 * @param items its items
 * @param width the width of its input
 * @param options what its client asked for
 */
public record ExpectedRequest(
        int index, long level, QueuePolicy policy, long arrival, int items, int width, Options options) {
    /** After so many nanoseconds an impatient client wants no answer. */
    static final long PATIENCE = 1_000;

    /** How a call asks to be scheduled. */
    public record Options(boolean impatient, int priority, int timeoutMicros) {}

    /** Says whether its time in the queue is over. */
    boolean isTimedOut(long now) {
        long timeout = policy.timeoutNanos(options.timeoutMicros());
        return timeout > 0 && now - arrival > timeout;
    }

    boolean isDelayed(long now) {
        return isTimedOut(now) && policy.action() == QueuePolicy.TimeoutAction.DELAY;
    }

    /** Says whether it must not be executed any more. */
    boolean isDead(long now) {
        return (options.impatient() && now - arrival >= PATIENCE) || (isTimedOut(now) && !isDelayed(now));
    }

    /** Says whether it has to go before another that waits as well. */
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
