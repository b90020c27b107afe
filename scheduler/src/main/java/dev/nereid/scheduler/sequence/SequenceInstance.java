package dev.nereid.scheduler.sequence;

import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.queue.BatchSource;
import dev.nereid.scheduler.queue.Batcher;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.QueueLock;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * An instance with the sequences in its slots, and the batches of their requests. Guarded by the lock of the sequences,
 * which the caller holds.
 */
final class SequenceInstance implements Batcher {
    /** The table of all sequences. It knows its instances, which do not depend on it. */
    interface Owner {
        /** Returns whether no more sequences begin. */
        boolean isStopped();

        void register(SequenceInstance instance);

        /** Gives free slots to the oldest sequences of the backlog. */
        void placeBacklog();

        /** Removes the waiting requests of the sequences in some slots, which end. The caller completes the requests. */
        List<ScheduledRequest> removeWaiting(Slots slots, SequenceEndReason reason);

        /** Ends the sequences in the slots of an instance that is gone, with an error for their requests. */
        void endAll(Slots slots);

        /** Refuses the requests that would wait in vain, if the model is to be unloaded. */
        void refuseStranded();

        /** Removes an instance; returns the waiting requests if no instance is left for them. */
        List<ScheduledRequest> deregister(SequenceInstance instance);
    }

    private final Owner owner;
    private final Slots slots;
    private final SlotStrategy strategy;
    private final boolean oneByOne;
    private final @Nullable Rescheduler rescheduler;
    private final BatchSource source;
    private @Nullable InstanceHandle handle;

    /** {@code true} if sequences may get a slot of the instance: it is warm. */
    private boolean open;

    private boolean retired;

    /** The ended sequences of which the instance is not notified. */
    private final List<InstanceHandle.EndedSequence> ended = new ArrayList<>(0);

    /** The number of waiting requests that only the instance's own thread may execute. */
    private int needingThread;

    /**
     * Creates an instance, which is not registered.
     *
     * @param strategy makes batches of the requests in these slots
     * @param oneByOne whether each execution ends before the next one begins
     * @param rescheduler takes requests that are to be rescheduled; {@code null} if none is
     */
    SequenceInstance(
            Owner owner,
            QueueLock lock,
            LongSupplier nanoTime,
            Slots slots,
            SlotStrategy strategy,
            boolean oneByOne,
            @Nullable Rescheduler rescheduler) {
        this.owner = owner;
        this.slots = slots;
        this.strategy = strategy;
        this.oneByOne = oneByOne;
        this.rescheduler = rescheduler;
        this.source = new BatchSource(lock, this, nanoTime);
    }

    /** Returns the source from which the instance takes its batches. */
    BatchSource source() {
        return source;
    }

    // The sequences.

    /** Returns the lowest free slot for a new sequence; {@link Integer#MAX_VALUE} if there is none. */
    int lowestFree() {
        int slot = slots.lowestFree();
        return open && !retired && !isUnavailable() && slot < slots.capacity() ? slot : Integer.MAX_VALUE;
    }

    int slotsUsed() {
        return slots.used();
    }

    /** Returns the number of slots that have a sequence or are free for new sequences. */
    int slots() {
        return open && !retired ? slots.capacity() : slots.used();
    }

    /** Gives the lowest free slot to a sequence. */
    void place(LiveSequence sequence) {
        sequence.slot = slots.occupy(sequence);
        sequence.instance = this;
    }

    void vacate(LiveSequence sequence) {
        slots.vacate(sequence.slot, sequence);
        sequence.instance = null;
        if (!mayHaveWork()) { // ever
            if (retired) {
                source.wakeForEnded(); // its thread ends it, which may have to be started
            } else {
                source.wakeAll();
            }
        }
    }

    /** Records a request that waits here, or does not any more. */
    void count(ScheduledRequest request, int added) {
        needingThread += request.needsInstanceThread() ? added : 0;
    }

    /** Records that the next request of a sequence may be taken, or not any more. */
    void changed(LiveSequence sequence, long now) {
        strategy.changed(sequence, now);
    }

    /** Ends a hold of batches, if there is one. */
    void endHold() {
        strategy.endHold();
    }

    /** Notifies the instance of a sequence that ended without its last request, before it takes another batch. */
    void sequenceEnded(InstanceHandle.EndedSequence sequence) {
        ended.add(sequence);
        source.wakeForEnded();
    }

    /** Returns whether the instance takes no batches for a while. */
    boolean isUnavailable() {
        return handle != null && handle.isUnavailable();
    }

    /** Removes the waiting requests of the sequences, which end. */
    List<ScheduledRequest> removeWaiting(SequenceEndReason reason) {
        return owner.removeWaiting(slots, reason);
    }

    // What the source of batches calls.

    @Override
    public void registered(InstanceHandle registered) {
        handle = registered;
        if (oneByOne) {
            registered.limitDeferred(1);
        }
        if (rescheduler != null) {
            registered.setRescheduler(rescheduler);
        }
        owner.register(this);
    }

    @Override
    public void opened() {
        open = true;
        owner.placeBacklog();
    }

    @Override
    public boolean isEmpty() {
        return strategy.isEmpty();
    }

    @Override
    public boolean hasBatch(long now) {
        return strategy.hasBatch(now, isStopped());
    }

    @Override
    public long waitNanos(long now) {
        return strategy.waitNanos(now);
    }

    @Override
    public boolean mayWaitLess() {
        return !isEmpty();
    }

    @Override
    public long batches() {
        return isEmpty() ? 0 : 1;
    }

    @Override
    public long take(InstanceHandle instance, long now) {
        strategy.take(instance, now, isStopped());
        return now;
    }

    @Override
    public boolean hasEnded() {
        return !ended.isEmpty();
    }

    @Override
    public void takeEnded(InstanceHandle instance) {
        instance.ended().addAll(ended);
        ended.clear();
    }

    @Override
    public boolean needsInstanceThread() {
        return needingThread > 0;
    }

    @Override
    public boolean isStopped() {
        return owner.isStopped();
    }

    @Override
    public boolean mayHaveWork() {
        return slots.used() > 0 || !ended.isEmpty() || !(retired || isStopped());
    }

    @Override
    public boolean retire(InstanceHandle instance) {
        retired = true;
        return mayHaveWork();
    }

    @Override
    public void lose(InstanceHandle instance) {
        owner.endAll(slots);
    }

    @Override
    public List<ScheduledRequest> removeWaiting() {
        return removeWaiting(SequenceEndReason.INSTANCE_LOST);
    }

    @Override
    public List<ScheduledRequest> deregister(InstanceHandle instance, boolean isLast) {
        if (handle != null) {
            strategy.close();
        }
        handle = null;
        retired = true;
        owner.endAll(slots);
        takeEnded(instance);
        return owner.deregister(this);
    }

    @Override
    public void availabilityChanged(long now) {
        if (handle != null) {
            owner.placeBacklog(); // nothing is free on it if it takes no batches
            owner.refuseStranded();
            source.wake(now);
        }
    }
}
