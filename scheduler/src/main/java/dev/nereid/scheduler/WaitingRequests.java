package dev.nereid.scheduler;

import java.util.ArrayList;
import java.util.List;
import java.util.OptionalLong;
import org.jspecify.annotations.Nullable;

/**
 * The requests of a model that wait: their order, and the moments at which their time is over. Confined to the lock of
 * the queue.
 *
 * <p>The memory of a request that is here is alive: whoever answers one takes it out before anything else.
 */
final class WaitingRequests {
    private final PriorityLevels levels;
    private final DueHeap dues = new DueHeap();

    WaitingRequests(PriorityPolicy priorities, EqualInputs equalInputs) {
        this.levels = new PriorityLevels(priorities, equalInputs);
    }

    /** Returns the order, as the planner sees it. */
    QueueView view() {
        return levels;
    }

    /** Returns the order as far as the answers of a model's own rule go. */
    FormedView view(StrategyForming forming, int maxBatchSize) {
        return new FormedView(levels, forming, maxBatchSize);
    }

    /**
     * Returns the requests that could make the next batch, by size and inputs: the first in any case.
     *
     * @param maxBatchSize the largest batch, in items
     */
    List<ScheduledRequest> candidates(int maxBatchSize) {
        List<ScheduledRequest> candidates = new ArrayList<>();
        long items = 0;
        boolean full = false;
        levels.rewind();
        while (!full && levels.next()) {
            items += levels.batchSize();
            full = !candidates.isEmpty() && (items > maxBatchSize || !levels.joins());
            if (!full) {
                candidates.add(levels.current());
            }
        }
        return candidates;
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
    boolean add(ScheduledRequest request) {
        PriorityLevel level = levels.level(request.call().options().priority());
        QueuePolicy policy = level.policy();
        if (!policy.admits(level.size())) {
            return false;
        }
        levels.add(request, level);
        remember(request, earlier(deadline(request), timeout(request, policy)));
        return true;
    }

    private void remember(ScheduledRequest request, @Nullable Due due) {
        request.due = due;
        if (due != null) {
            dues.add(due);
        }
    }

    private static @Nullable Due deadline(ScheduledRequest request) {
        OptionalLong deadline = request.call().options().deadlineNanos();
        return deadline.isEmpty()
                ? null
                : due(request, Due.Cause.DEADLINE, deadline.getAsLong() - request.enqueuedNanos());
    }

    /** A request whose time ends with a nanosecond is in time during that nanosecond. */
    private static @Nullable Due timeout(ScheduledRequest request, QueuePolicy policy) {
        long timeout = policy.timeoutNanos(request.call().options().timeoutMicros());
        return timeout == 0 || timeout >= Due.NEVER ? null : due(request, Due.Cause.TIMEOUT, timeout + 1);
    }

    private static @Nullable Due due(ScheduledRequest request, Due.Cause cause, long afterNanos) {
        return afterNanos >= Due.NEVER
                ? null
                : new Due(request, cause, request.enqueuedNanos() + Math.max(0, afterNanos));
    }

    private static @Nullable Due earlier(@Nullable Due one, @Nullable Due other) {
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
    boolean remove(ScheduledRequest request) {
        PriorityLevel level = request.level;
        if (level == null) {
            return false;
        }
        levels.remove(request, level);
        forget(request);
        return true;
    }

    private void forget(ScheduledRequest request) {
        if (request.due != null) {
            dues.remove(request.due);
            request.due = null;
        }
    }

    /** Removes the request that goes first; {@code null} if none waits. */
    @Nullable
    ScheduledRequest poll() {
        ScheduledRequest first = levels.first();
        if (first != null) {
            remove(first);
        }
        return first;
    }

    /**
     * Takes those out whose time is over, and delays those that are to wait on.
     *
     * @param overdue what is to be answered outside of the lock is added to it
     */
    void expire(long nowNanos, List<Due> overdue) {
        for (Due due = dues.peek(); due != null && due.isPast(nowNanos); due = dues.peek()) {
            if (!delay(due)) {
                remove(due.request());
                overdue.add(due);
            }
        }
    }

    /** Lets a request wait on behind the others, if that is what happens when its time is over. */
    private boolean delay(Due due) {
        ScheduledRequest request = due.request();
        PriorityLevel level = request.level;
        if (level == null
                || due.cause() != Due.Cause.TIMEOUT
                || level.policy().action() != QueuePolicy.TimeoutAction.DELAY) {
            return false;
        }
        forget(request);
        level.delay(request);
        remember(request, deadline(request)); // its time is over once only, but its client may still leave
        return true;
    }

    /** Returns the next moment at which the time of a request is over; {@code null} if there is none. */
    @Nullable
    Due nextDue() {
        return dues.peek();
    }

    /** Takes all requests out. */
    void drainTo(List<ScheduledRequest> drained) {
        for (ScheduledRequest request = poll(); request != null; request = poll()) {
            drained.add(request);
        }
    }
}
