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
 * <p>The memory of a request that is here is alive: whoever answers one takes it out before anything else.
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

    /** Says whether any request is left to the threads of instances. */
    boolean hasHeavy() {
        return levels.heavy() > 0;
    }

    /**
     * Adds a request.
     *
     * @return whether its level had room
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

    private void setDeadline(QueueEntry entry, @Nullable Deadline due) {
        entry.deadline = due;
        if (due != null) {
            deadlines.add(due);
        }
    }

    private static @Nullable Deadline deadline(QueueEntry entry) {
        ScheduledRequest request = entry.request();
        OptionalLong deadline = request.checked().options().deadlineNanos();
        return deadline.isEmpty()
                ? null
                : newDeadline(entry, Deadline.Cause.DEADLINE, deadline.getAsLong() - request.enqueuedNanos());
    }

    /** A request whose time ends with a nanosecond is in time during that nanosecond. */
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
     * Removes a request, if it is here.
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
     * Takes those out whose time is over, and delays those that are to wait on.
     *
     * @param overdue what is to be answered outside of the lock is added to it
     */
    void expire(long nowNanos, List<Deadline> overdue) {
        for (Deadline due = deadlines.peek(); due != null && due.isPast(nowNanos); due = deadlines.peek()) {
            if (!delay(due)) {
                remove(due.entry());
                overdue.add(due);
            }
        }
    }

    /** Lets a request wait on behind the others, if that is what happens when its time is over. */
    private boolean delay(Deadline due) {
        QueueEntry entry = due.entry();
        PriorityLevel level = entry.level;
        if (level == null
                || due.cause() != Deadline.Cause.TIMEOUT
                || level.policy().action() != QueuePolicy.TimeoutAction.DELAY) {
            return false;
        }
        clearDeadline(entry);
        level.delay(entry);
        setDeadline(entry, deadline(entry)); // its time is over once only, but its client may still leave
        return true;
    }

    /** Returns the next moment at which the time of a request is over; {@code null} if there is none. */
    @Nullable
    Deadline nextDeadline() {
        return deadlines.peek();
    }

    /** Takes all requests out. */
    void drainTo(List<ScheduledRequest> drained) {
        for (ScheduledRequest request = poll(); request != null; request = poll()) {
            drained.add(request);
        }
    }
}
