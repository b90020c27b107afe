package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.batch.QueueView;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Holds the waiting requests of a model: their order and their timeouts. Confined to the lock of the queue.
 *
 * <p>The memory of a request in the queue is alive: a thread that completes one removes it first.
 */
final class WaitingRequests {
    private final PriorityLevels levels;
    private final QueueTimeouts timeouts;

    WaitingRequests(PriorityPolicy priorities, EqualInputs equalInputs) {
        this.levels = new PriorityLevels(priorities, equalInputs);
        this.timeouts = new QueueTimeouts(levels);
    }

    /** Returns the order, as the planner sees it. */
    QueueView view() {
        return levels;
    }

    QueueTimeouts timeouts() {
        return timeouts;
    }

    int length() {
        return levels.length();
    }

    long items() {
        return levels.items();
    }

    /** Returns whether any request is excluded from direct execution. */
    boolean needInstanceThread() {
        return levels.needingInstanceThread() > 0;
    }

    /** Adds a request; returns whether its priority level had capacity. */
    boolean add(QueueEntry entry) {
        ScheduledRequest request = entry.request();
        PriorityLevel level = levels.level(request.checked().options().priority());
        QueuePolicy policy = level.policy();
        if (!policy.admits(level.size())) {
            return false;
        }
        levels.add(entry, level);
        timeouts.start(entry, policy);
        return true;
    }

    /** Adds a rescheduled request. It is admitted, and has no timeout any more. */
    void addAgain(QueueEntry entry) {
        levels.add(entry, levels.level(entry.request().checked().options().priority()));
        timeouts.start(entry, QueuePolicy.NONE);
    }

    /** Removes a request; returns whether it was in the queue. */
    boolean remove(QueueEntry entry) {
        PriorityLevel level = entry.level;
        if (level == null) {
            return false;
        }
        levels.remove(entry, level);
        timeouts.stop(entry);
        return true;
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

    List<ScheduledRequest> drain() {
        List<ScheduledRequest> drained = new ArrayList<>(length());
        for (ScheduledRequest request = poll(); request != null; request = poll()) {
            drained.add(request);
        }
        return drained;
    }
}
