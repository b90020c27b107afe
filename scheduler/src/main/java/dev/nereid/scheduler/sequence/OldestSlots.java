package dev.nereid.scheduler.sequence;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.batch.QueueView;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.request.ScheduledRequest;
import org.jspecify.annotations.Nullable;

/**
 * The oldest strategy: the next requests of all sequences form batches together. They wait like requests of the dynamic
 * batcher. Guarded by the lock of the sequences.
 *
 * <p>One request of a sequence waits here at a time, and none while one is in execution; so a batch never has two
 * requests of a sequence.
 */
final class OldestSlots implements SlotStrategy, QueueView {
    private final SequenceExecutions executions;
    private final EqualInputs equalInputs;
    private final BatchPlanner planner;

    /** The sequences with a next request that may be taken, in the order in which they became ready. */
    private final LiveSequence.Chain ready = new LiveSequence.Chain();

    /** The number of sequences with a request that the first batch waits for; 0 for none. */
    private int held;

    /** The first sequence and the current one of the view; {@code null} before the first. */
    private @Nullable LiveSequence first;

    private @Nullable LiveSequence current;

    /** Creates a strategy without sequences. The first batch waits for {@code held} sequences with a request. */
    OldestSlots(SequenceExecutions executions, EqualInputs equalInputs, BatchPlanner planner, int held) {
        this.held = held;
        this.executions = executions;
        this.equalInputs = equalInputs;
        this.planner = planner;
    }

    @Override
    public void changed(LiveSequence sequence, long now) {
        boolean waits = sequence.mayBegin();
        if (waits && sequence.list == null) {
            sequence.nanos = now;
            ready.add(sequence);
        } else if (!waits) {
            ready.remove(sequence);
        }
    }

    @Override
    public void close() {
        executions.removeInstance();
    }

    @Override
    public void endHold() {
        held = 0;
    }

    private boolean isHeld() {
        if (ready.size() >= held || executions.isStopped()) {
            held = 0;
        }
        return held > 0;
    }

    @Override
    public boolean hasBatch(long now, boolean hurry) {
        return !isHeld() && planner.take(this, now, hurry) > 0;
    }

    @Override
    public boolean isEmpty() {
        return nextWaiting(ready.first()) == null || isHeld();
    }

    @Override
    public long waitNanos(long now) {
        return planner.waitNanos(this, now);
    }

    @Override
    public void take(InstanceHandle handle, long now, boolean hurry) {
        int count = isHeld() ? 0 : planner.take(this, now, hurry);
        LiveSequence sequence = nextWaiting(ready.first());
        LiveSequence leader = null;
        SequenceEntry template = null;
        for (int i = 0; i < count && sequence != null; i++) {
            LiveSequence following = sequence.next;
            SequenceEntry entry = sequence.first();
            if (leader != null && template != null && !joins(sequence, leader, template)) {
                return; // one that was counted is cancelled by now, and another one is in its place
            }
            if (executions.begin(sequence, SequenceExecution.ANY_ROW, handle)) {
                ready.remove(sequence);
                leader = leader == null ? sequence : leader;
                template = template == null ? entry : template;
            }
            sequence = nextWaiting(following);
        }
    }

    /** Returns whether the next request of a sequence may share the batch of another sequence, which has begun. */
    private boolean joins(LiveSequence sequence, LiveSequence leader, SequenceEntry template) {
        return sequence.joins(leader, true) && equalInputs.join(template, sequence.first());
    }

    /** Returns a sequence, or the first one behind it, with a request that is not completed; {@code null} for none. */
    private static @Nullable LiveSequence nextWaiting(@Nullable LiveSequence from) {
        LiveSequence sequence = from;
        while (sequence != null && !sequence.isReady()) {
            sequence = sequence.next;
        }
        return sequence;
    }

    @Override
    public void rewind() {
        first = null;
        current = null;
    }

    @Override
    public boolean next() {
        LiveSequence before = current;
        LiveSequence found = nextWaiting(before == null ? ready.first() : before.next);
        if (found != null) {
            first = first == null ? found : first;
            current = found;
        }
        return found != null;
    }

    private SequenceEntry head() {
        return requireNonNull(current).first();
    }

    @Override
    public ScheduledRequest current() {
        return head().request();
    }

    @Override
    public int batchSize() {
        return 1;
    }

    @Override
    public long enqueuedNanos() {
        return requireNonNull(current).nanos;
    }

    @Override
    public boolean joins() {
        LiveSequence one = requireNonNull(first);
        return requireNonNull(current).joins(one, false) && equalInputs.join(one.first(), head());
    }
}
