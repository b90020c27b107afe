package dev.nereid.scheduler;

import dev.nereid.scheduler.queue.QueuePolicy;

/**
 * The expected state of a request. Immutable.
 *
 * @param index its index among the requests to its model, and its id
 * @param level its level of priority
 * @param policy the policy of that level
 * @param waiting its arrival, and its current wait
 * @param items its items
 * @param width the width of its input
 * @param options its scheduling options
 */
public record ExpectedRequest(
        int index, long level, QueuePolicy policy, Wait waiting, int items, int width, Options options) {
    /** The time to the deadline of a request that has one. */
    static final long DEADLINE_NANOS = 1_000;

    /** Scheduling options of a request. */
    public record Options(boolean hasDeadline, int priority, int timeoutMicros) {}

    /**
     * The wait of a request.
     *
     * @param arrival when it came, in nanoseconds
     * @param since when it began to wait, last
     * @param order its place among all requests that began to wait
     * @param again whether it was executed before
     */
    public record Wait(long arrival, long since, int order, boolean again) {}

    /** Returns the state of a request that comes now; requests are in the order of their indices. */
    static ExpectedRequest at(
            long now, int index, long level, QueuePolicy policy, int items, int width, Options options) {
        return new ExpectedRequest(index, level, policy, new Wait(now, now, index, false), items, width, options);
    }

    /** Returns its state when it waits again. */
    ExpectedRequest again(long now, int order) {
        return new ExpectedRequest(index, level, policy, new Wait(arrival(), now, order, true), items, width, options);
    }

    /** Returns its state with another place in the order. */
    ExpectedRequest in(int order) {
        return new ExpectedRequest(
                index,
                level,
                policy,
                new Wait(arrival(), waiting.since(), order, waiting.again()),
                items,
                width,
                options);
    }

    long arrival() {
        return waiting.arrival();
    }

    /** Returns whether its queue timeout has expired. It has none after its first execution. */
    boolean isTimedOut(long now) {
        if (waiting.again()) {
            return false;
        }
        long timeout = policy.timeoutNanos(options.timeoutMicros());
        return timeout > 0 && now - arrival() > timeout;
    }

    boolean isDelayed(long now) {
        return isTimedOut(now) && policy.action() == QueuePolicy.TimeoutAction.DELAY;
    }

    /** Returns whether it must not be executed any more. */
    boolean isDead(long now) {
        return (options.hasDeadline() && now - arrival() >= DEADLINE_NANOS) || (isTimedOut(now) && !isDelayed(now));
    }

    /** Returns whether it has to go before another waiting request. */
    boolean goesBefore(ExpectedRequest other, long now) {
        if (level != other.level) {
            return level < other.level;
        }
        if (isDelayed(now) != other.isDelayed(now)) {
            return other.isDelayed(now);
        }
        return isDelayed(now) ? expiresAt() - other.expiresAt() < 0 : waiting.order() < other.waiting.order();
    }

    private long expiresAt() {
        return arrival() + policy.timeoutNanos(options.timeoutMicros());
    }
}
