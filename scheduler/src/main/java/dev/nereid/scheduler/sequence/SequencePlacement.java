package dev.nereid.scheduler.sequence;

import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.queue.DeadlineHeap;
import dev.nereid.scheduler.queue.SequenceUse;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Places the sequences of a model in slots of instances, or in the backlog. Sequences in the backlog wait for a slot.
 * Guarded by the lock of the sequences, which the caller holds.
 *
 * <p>A sequence gets the lowest free slot over all instances; of the backlog, the oldest one goes first.
 */
final class SequencePlacement {
    private final LongSupplier nanoTime;
    private final DeadlineHeap<Runnable> deadlines;
    private final LiveSequence.Chain backlog = new LiveSequence.Chain();
    private final List<SequenceInstance> instances = new ArrayList<>();

    /** {@code true} while no instance takes a batch, until as many requests wait as the next two say. */
    private boolean held;

    private int heldRequests;
    private int heldBacklog;

    /** Creates a placement without instances. {@code deadlines} has the expiries of sequences in the backlog. */
    SequencePlacement(LongSupplier nanoTime, DeadlineHeap<Runnable> deadlines) {
        this.nanoTime = nanoTime;
        this.deadlines = deadlines;
    }

    void register(SequenceInstance instance) {
        instances.add(instance);
    }

    void deregister(SequenceInstance instance) {
        instances.remove(instance);
    }

    boolean hasInstances() {
        return !instances.isEmpty();
    }

    /** Returns whether no instance takes batches at present. */
    boolean areAllUnavailable() {
        for (int i = 0; i < instances.size(); i++) {
            if (!instances.get(i).isUnavailable()) {
                return false;
            }
        }
        return true;
    }

    List<SequenceInstance> instances() {
        return instances;
    }

    /** Returns the sequences that wait for a slot, the oldest one in front. */
    LiveSequence.Chain backlog() {
        return backlog;
    }

    /** Returns the instance with the lowest free slot; {@code null} if no slot is free. */
    private @Nullable SequenceInstance withFreeSlot() {
        SequenceInstance best = null;
        int lowest = Integer.MAX_VALUE;
        for (int i = 0; i < instances.size(); i++) {
            int slot = instances.get(i).lowestFree();
            if (slot < lowest) {
                lowest = slot;
                best = instances.get(i);
            }
        }
        return best;
    }

    /** Gives a slot to a sequence that is in no list, or adds it to the backlog. */
    void place(LiveSequence sequence, long now) {
        SequenceInstance free = withFreeSlot();
        if (free == null) {
            backlog.add(sequence);
        } else {
            place(sequence, free, now);
        }
    }

    /** Gives a slot to a sequence that is in no list. */
    private void place(LiveSequence sequence, SequenceInstance instance, long now) {
        deadlines.remove(sequence.expiry);
        sequence.expiry = null;
        instance.place(sequence);
        for (SequenceEntry entry = sequence.head(); entry != null; entry = entry.next) {
            instance.count(entry.request(), 1);
        }
        instance.changed(sequence, now);
    }

    /** Gives free slots to the oldest sequences of the backlog. */
    void placeBacklog() {
        long now = nanoTime.getAsLong();
        SequenceInstance free = backlog.first() == null ? null : withFreeSlot();
        while (free != null) {
            place(backlog.poll(), free, now);
            free.source().wake(now);
            free = backlog.first() == null ? null : withFreeSlot();
        }
    }

    /** Frees the slot of a sequence, if it has one, for the backlog. */
    void vacate(LiveSequence sequence) {
        SequenceInstance instance = sequence.instance;
        if (instance != null) {
            instance.vacate(sequence);
            placeBacklog();
        }
    }

    /** Holds batches back until so many requests of sequences with a slot, and in the backlog, wait. */
    void hold(int requests, int backlogged) {
        heldRequests = requests;
        heldBacklog = backlogged;
        held = requests > 0 || backlogged > 0;
    }

    boolean isHeld() {
        return held;
    }

    /** Ends the hold if enough requests wait; {@code waiting} counts all of them. */
    void checkHold(int waiting) {
        if (!held) {
            return;
        }
        int behind = 0;
        for (LiveSequence one = backlog.first(); one != null; one = one.next) {
            for (SequenceEntry entry = one.head(); entry != null; entry = entry.next) {
                behind++;
            }
        }
        if (waiting - behind >= heldRequests && behind >= heldBacklog) {
            endHold();
        }
    }

    /** Ends the hold: all instances take batches. */
    void endHold() {
        held = false;
        long now = nanoTime.getAsLong();
        for (SequenceInstance instance : instances) {
            instance.endHold();
            instance.source().wake(now);
        }
    }

    /** Returns numbers of sequences. {@code unfinished} have not ended; if {@code stopped}, free slots stay free. */
    SequenceUse use(int unfinished, boolean stopped, SequenceUse.States states, Map<SequenceEndReason, Long> ended) {
        int used = 0;
        int all = 0;
        for (SequenceInstance instance : instances) {
            used += instance.slotsUsed();
            all += stopped ? instance.slotsUsed() : instance.slots();
        }
        return new SequenceUse(unfinished, backlog.size(), used, all, states, ended);
    }
}
