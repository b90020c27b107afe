package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.batch.QueueView;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.Map;
import java.util.TreeMap;
import org.jspecify.annotations.Nullable;

/**
 * The waiting requests of a model, ordered by priority level. Confined to the lock of the queue.
 *
 * <p>The number of levels may be huge, so only the levels with waiting requests are kept, and the one used last. A
 * model without levels has only the latter.
 */
final class PriorityLevels implements QueueView {
    private final PriorityPolicy policy;
    private final EqualInputs equalInputs;

    /** The levels with waiting requests; empty for a model without levels. */
    private final TreeMap<Long, PriorityLevel> waiting = new TreeMap<>(Long::compareUnsigned);

    private PriorityLevel recent;
    private int length;
    private long items;
    private int needingInstanceThread;

    /** The first request that the planner visited, and the current one. */
    private @Nullable QueueEntry head;

    private @Nullable QueueEntry current;

    PriorityLevels(PriorityPolicy policy, EqualInputs equalInputs) {
        this.policy = policy;
        this.equalInputs = equalInputs;
        this.recent = level(policy, 0);
    }

    private static PriorityLevel level(PriorityPolicy policy, long requested) {
        long number = policy.level(requested);
        return new PriorityLevel(number, policy.policy(number));
    }

    /** Returns the number of requests that wait. */
    int length() {
        return length;
    }

    /** Returns the number of items in all requests that wait. */
    long items() {
        return items;
    }

    /** Returns the number of waiting requests that are excluded from direct execution. */
    int needingInstanceThread() {
        return needingInstanceThread;
    }

    /** Returns the level of a request that specifies {@code requested}. */
    PriorityLevel level(long requested) {
        long number = policy.level(requested);
        if (recent.number() != number) {
            PriorityLevel found = waiting.get(number);
            recent = found == null ? level(policy, number) : found;
        }
        return recent;
    }

    void add(QueueEntry entry, PriorityLevel level) {
        if (level.size() == 0 && !policy.isFlat()) {
            waiting.put(level.number(), level);
        }
        level.add(entry);
        length++;
        items += entry.request().checked().batchSize();
        needingInstanceThread += entry.request().needsInstanceThread() ? 1 : 0;
    }

    /** Removes a request from the level on which it waits. */
    void remove(QueueEntry entry, PriorityLevel level) {
        level.remove(entry);
        if (level.size() == 0 && !policy.isFlat()) {
            waiting.remove(level.number());
        }
        length--;
        items -= entry.request().checked().batchSize();
        needingInstanceThread -= entry.request().needsInstanceThread() ? 1 : 0;
    }

    /** Returns the request that goes first; {@code null} if none waits. */
    @Nullable
    QueueEntry first() {
        if (policy.isFlat()) {
            return recent.first();
        }
        return first(waiting.firstEntry());
    }

    private static @Nullable QueueEntry first(Map.@Nullable Entry<Long, PriorityLevel> entry) {
        return entry == null ? null : entry.getValue().first();
    }

    @Override
    public void rewind() {
        head = null;
        current = null;
    }

    @Override
    public boolean next() {
        if (current == null) {
            head = first();
            current = head;
        } else {
            current = after(current);
        }
        return current != null;
    }

    private @Nullable QueueEntry after(QueueEntry entry) {
        if (entry.next != null || entry.level == null || policy.isFlat()) {
            return entry.next;
        }
        return first(waiting.higherEntry(entry.level.number()));
    }

    @Override
    public int batchSize() {
        return get(current).request().checked().batchSize();
    }

    @Override
    public long enqueuedNanos() {
        return get(current).request().enqueuedNanos();
    }

    @Override
    public boolean joins() {
        return equalInputs.join(get(head), get(current));
    }

    @Override
    public ScheduledRequest current() {
        return get(current).request();
    }

    private static QueueEntry get(@Nullable QueueEntry entry) {
        if (entry == null) {
            throw new IllegalStateException("no current request (expected: next returned true)");
        }
        return entry;
    }
}
