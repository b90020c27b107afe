package dev.nereid.scheduler.queue;

import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.request.IndependentCalls;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Handles timeouts and deadlines of waiting requests. Confined to the lock of the queue.
 *
 * <p>The earlier of the timeout by the policy of its level and the deadline of its client applies to a request. After
 * the timeout it is rejected, or moved behind the others of its level; after the deadline it is cancelled.
 */
final class QueueTimeouts {
    private static final Logger LOG = LoggerFactory.getLogger(QueueTimeouts.class);

    private final PriorityLevels levels;
    private final DeadlineHeap<QueueEntry> deadlines = new DeadlineHeap<>();

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

    /** Removes expired requests, to be rejected outside of the lock, or delays them if their policy says so. */
    void expire(long nowNanos, List<Deadline<QueueEntry>> expired) {
        for (Deadline<QueueEntry> deadline = deadlines.peek();
                deadline != null && deadline.isPast(nowNanos);
                deadline = deadlines.peek()) {
            QueueEntry entry = deadline.waiting();
            PriorityLevel level = entry.level;
            if (level != null && delays(deadline, level)) {
                Deadline<QueueEntry> later =
                        deadline(entry); // the timeout counts once only, but the client's deadline stays
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
    Deadline<QueueEntry> next() {
        return deadlines.peek();
    }

    /** Rejects and removes all requests of a list. An exception of one request does not keep the others. */
    static void rejectAll(List<Deadline<QueueEntry>> expired) {
        try {
            IndependentCalls.forEach(expired, QueueTimeouts::rejectQuietly);
        } finally {
            expired.clear();
        }
    }

    private static void rejectQuietly(Deadline<QueueEntry> expired) {
        try {
            reject(expired);
        } catch (RuntimeException e) {
            LOG.atError().setCause(e).log("request not rejected");
        }
    }

    /** Rejects an expired request. */
    static void reject(Deadline<QueueEntry> expired) {
        ScheduledRequest request = expired.waiting().request();
        switch (expired.cause()) {
            case DEADLINE -> request.reject(SchedulerErrors.cancelled(), FailureReason.CANCELED);
            case TIMEOUT -> request.reject(SchedulerErrors.timedOut(), FailureReason.REJECTED);
        }
    }

    private static boolean delays(Deadline<QueueEntry> deadline, PriorityLevel level) {
        return deadline.cause() == Deadline.Cause.TIMEOUT && level.policy().action() == QueuePolicy.TimeoutAction.DELAY;
    }

    private void setDeadline(QueueEntry entry, @Nullable Deadline<QueueEntry> deadline) {
        if (deadline != null) {
            deadlines.add(deadline);
        }
        entry.deadline = deadline;
    }

    private static @Nullable Deadline<QueueEntry> deadline(QueueEntry entry) {
        ScheduledRequest request = entry.request();
        OptionalLong deadline = request.checked().options().deadlineNanos();
        return deadline.isEmpty()
                ? null
                : newDeadline(entry, Deadline.Cause.DEADLINE, deadline.getAsLong() - request.enqueuedNanos());
    }

    /** Returns the timeout of a request. A request does not expire during the last nanosecond of its timeout. */
    private static @Nullable Deadline<QueueEntry> timeout(QueueEntry entry, QueuePolicy policy) {
        long timeout = policy.timeoutNanos(entry.request().checked().options().timeoutMicros());
        return timeout == 0 || timeout >= Deadline.NEVER
                ? null
                : newDeadline(entry, Deadline.Cause.TIMEOUT, timeout + 1);
    }

    private static @Nullable Deadline<QueueEntry> newDeadline(QueueEntry entry, Deadline.Cause cause, long afterNanos) {
        return afterNanos >= Deadline.NEVER
                ? null
                : new Deadline<>(entry, cause, entry.request().enqueuedNanos() + Math.max(0, afterNanos));
    }

    private static @Nullable Deadline<QueueEntry> earlier(
            @Nullable Deadline<QueueEntry> first, @Nullable Deadline<QueueEntry> second) {
        if (first == null || second == null) {
            return first == null ? second : first;
        }
        return second.isBefore(first) ? second : first;
    }
}
