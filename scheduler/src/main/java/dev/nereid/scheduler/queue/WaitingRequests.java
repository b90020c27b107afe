package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.batch.QueueView;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * Orders the waiting requests of a model, and tracks their deadlines. Confined to the lock of the queue.
 *
 * <p>The memory of a request in the queue is alive: a thread that completes one removes it first.
 */
final class WaitingRequests {
    private final PriorityLevels levels;
    private final DeadlineQueue deadlines = new DeadlineQueue();

    WaitingRequests(PriorityPolicy priorities, EqualInputs equalInputs) {
        this.levels = new PriorityLevels(priorities, equalInputs);
    }

    /** Returns the order, as the planner sees it. */
    QueueView view() {
        return levels;
    }

    /** Returns the number of requests. */
    int length() {
        return levels.length();
    }

    /** Returns the number of items in all requests. */
    long items() {
        return levels.items();
    }

    /** Returns whether any request is excluded from direct execution. */
    boolean hasHeavy() {
        return levels.heavy() > 0;
    }

    /**
     * Adds a request.
     *
     * @return whether its priority level had capacity
     */
    boolean add(QueueEntry entry) {
        ScheduledRequest request = entry.request();
        PriorityLevel level = levels.level(request.checked().options().priority());
        QueuePolicy policy = level.policy();
        if (!policy.admits(level.size())) {
            return false;
        }
        levels.add(entry, level);
        setDeadline(entry, earlier(deadline(entry), timeout(entry, policy)));
        return true;
    }

    private void setDeadline(QueueEntry entry, @Nullable Deadline deadline) {
        entry.deadline = deadline;
        if (deadline != null) {
            deadlines.add(deadline);
        }
    }

    private static @Nullable Deadline deadline(QueueEntry entry) {
        ScheduledRequest request = entry.request();
        OptionalLong deadline = request.checked().options().deadlineNanos();
        return deadline.isEmpty()
                ? null
                : newDeadline(entry, Deadline.Cause.DEADLINE, deadline.getAsLong() - request.enqueuedNanos());
    }

    /** Returns the timeout of a request. A request does not expire during the last nanosecond of its timeout. */
    private static @Nullable Deadline timeout(QueueEntry entry, QueuePolicy policy) {
        long timeout = policy.timeoutNanos(entry.request().checked().options().timeoutMicros());
        return timeout == 0 || timeout >= Deadline.NEVER
                ? null
                : newDeadline(entry, Deadline.Cause.TIMEOUT, timeout + 1);
    }

    private static @Nullable Deadline newDeadline(QueueEntry entry, Deadline.Cause cause, long afterNanos) {
        return afterNanos >= Deadline.NEVER
                ? null
                : new Deadline(entry, cause, entry.request().enqueuedNanos() + Math.max(0, afterNanos));
    }

    private static @Nullable Deadline earlier(@Nullable Deadline one, @Nullable Deadline other) {
        if (one == null || other == null) {
            return one == null ? other : one;
        }
        return other.isBefore(one) ? other : one;
    }

    /**
     * Removes a request, if it is in the queue.
     *
     * @return whether it was
     */
    boolean remove(QueueEntry entry) {
        PriorityLevel level = entry.level;
        if (level == null) {
            return false;
        }
        levels.remove(entry, level);
        clearDeadline(entry);
        return true;
    }

    private void clearDeadline(QueueEntry entry) {
        if (entry.deadline != null) {
            deadlines.remove(entry.deadline);
            entry.deadline = null;
        }
    }

    /** Removes the request that goes first; {@code null} if none waits. */
    @Nullable
    ScheduledRequest poll() {
        QueueEntry first = levels.first();
        if (first == null) {
            return null;
        }
        remove(first);
        return first.request();
    }

    /**
     * Removes expired requests, and delays those whose policy lets them wait on.
     *
     * @param expired receives the deadlines of the removed requests, to be rejected outside of the lock
     */
    void expire(long nowNanos, List<Deadline> expired) {
        for (Deadline deadline = deadlines.peek();
                deadline != null && deadline.isPast(nowNanos);
                deadline = deadlines.peek()) {
            if (!delay(deadline)) {
                remove(deadline.entry());
                expired.add(deadline);
            }
        }
    }

    /** Moves a request behind the others of its level, if the policy of the level delays expired requests. */
    private boolean delay(Deadline deadline) {
        QueueEntry entry = deadline.entry();
        PriorityLevel level = entry.level;
        if (level == null
                || deadline.cause() != Deadline.Cause.TIMEOUT
                || level.policy().action() != QueuePolicy.TimeoutAction.DELAY) {
            return false;
        }
        clearDeadline(entry);
        level.delay(entry);
        setDeadline(entry, deadline(entry)); // the timeout counts once only, but the client's deadline stays
        return true;
    }

    /** Returns the earliest deadline of a request; {@code null} if there is none. */
    @Nullable
    Deadline nextDeadline() {
        return deadlines.peek();
    }

    /** Removes all requests. */
    void drainTo(List<ScheduledRequest> drained) {
        for (ScheduledRequest request = poll(); request != null; request = poll()) {
            drained.add(request);
        }
    }
}
