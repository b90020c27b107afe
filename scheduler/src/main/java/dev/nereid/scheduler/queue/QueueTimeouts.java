package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * Handles timeouts and deadlines of waiting requests. Confined to the lock of the queue.
 *
 * <p>The earlier of the timeout by the policy of its level and the deadline of its client applies to a request. After
 * the timeout it is rejected, or moved behind the others of its level; after the deadline it is cancelled.
 */
final class QueueTimeouts {
    private final PriorityLevels levels;
    private final DeadlineHeap deadlines = new DeadlineHeap();

    QueueTimeouts(PriorityLevels levels) {
        this.levels = levels;
    }

    /** Starts the timeout and the deadline of a request that was added to its level. */
    void start(QueueEntry entry, QueuePolicy policy) {
        setDeadline(entry, earlier(deadline(entry), timeout(entry, policy)));
    }

    /** Stops the timeout and the deadline of a request that was removed from its level. */
    void stop(QueueEntry entry) {
        if (entry.deadline != null) {
            deadlines.remove(entry.deadline);
            entry.deadline = null;
        }
    }

    /**
     * Removes expired requests, or delays them if their policy says so.
     *
     * @param expired receives the deadlines of the removed requests, to be rejected outside of the lock
     */
    void expire(long nowNanos, List<Deadline> expired) {
        for (Deadline deadline = deadlines.peek();
                deadline != null && deadline.isPast(nowNanos);
                deadline = deadlines.peek()) {
            QueueEntry entry = deadline.entry();
            PriorityLevel level = entry.level;
            if (level != null && delays(deadline, level)) {
                Deadline later = deadline(entry); // the timeout counts once only, but the client's deadline stays
                stop(entry);
                level.delay(entry);
                setDeadline(entry, later);
            } else {
                expired.add(deadline);
                stop(entry);
                if (level != null) {
                    levels.remove(entry, level);
                }
            }
        }
    }

    /** Returns the earliest deadline of a request; {@code null} if there is none. */
    @Nullable
    Deadline next() {
        return deadlines.peek();
    }

    private static boolean delays(Deadline deadline, PriorityLevel level) {
        return deadline.cause() == Deadline.Cause.TIMEOUT && level.policy().action() == QueuePolicy.TimeoutAction.DELAY;
    }

    private void setDeadline(QueueEntry entry, @Nullable Deadline deadline) {
        if (deadline != null) {
            deadlines.add(deadline);
        }
        entry.deadline = deadline;
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

    private static @Nullable Deadline earlier(@Nullable Deadline first, @Nullable Deadline second) {
        if (first == null || second == null) {
            return first == null ? second : first;
        }
        return second.isBefore(first) ? second : first;
    }
}
