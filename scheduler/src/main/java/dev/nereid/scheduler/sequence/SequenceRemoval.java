package dev.nereid.scheduler.sequence;

import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;

/**
 * Ends all sequences of a lost instance, of the backlog or of the model. Guarded by the lock of the sequences, which
 * the caller holds.
 */
final class SequenceRemoval {
    private final SequenceTable table;
    private final SequencePlacement placement;

    SequenceRemoval(SequenceTable table, SequencePlacement placement) {
        this.table = table;
        this.placement = placement;
    }

    /** Removes the waiting requests of all sequences of an instance, which end. The caller completes the requests. */
    List<ScheduledRequest> removeWaiting(Slots slots, SequenceEndReason reason) {
        List<ScheduledRequest> removed = new ArrayList<>();
        for (int slot = slots.limit() - 1; slot >= 0; slot--) {
            LiveSequence sequence = slot < slots.limit() ? slots.get(slot) : null;
            if (sequence != null && sequence.head() != null) {
                removeAll(sequence, removed);
                table.endAfterWaiting(sequence, reason);
            }
        }
        return removed;
    }

    private void removeAll(LiveSequence sequence, List<ScheduledRequest> removed) {
        for (SequenceEntry entry = sequence.head(); entry != null; entry = sequence.head()) {
            table.unlink(sequence, entry);
            removed.add(entry.request());
        }
    }

    /** Ends all sequences of an instance that is gone, with an error for their requests. */
    void endAll(Slots slots) {
        for (int slot = slots.limit() - 1; slot >= 0; slot--) {
            LiveSequence sequence = slot < slots.limit() ? slots.get(slot) : null;
            if (sequence == null) {
                continue;
            }
            for (SequenceEntry entry = sequence.head(); entry != null; entry = sequence.head()) {
                table.unlink(sequence, entry);
                table.rejectLater(entry, SequenceErrors.instanceGone(entry.checked(), sequence.id()));
            }
            table.endAfterWaiting(sequence, SequenceEndReason.INSTANCE_LOST);
            if (sequence.instance != null) { // its last request is in execution
                placement.vacate(sequence);
            }
        }
    }

    /**
     * Refuses the requests that would wait in vain: the model is to be unloaded, and the instance of their sequence, or
     * for the backlog every instance, takes no batches.
     */
    void refuseStranded() {
        if (!table.isLeaving()) {
            return;
        }
        List<ScheduledRequest> stranded = new ArrayList<>(0);
        if (placement.areAllUnavailable()) {
            drainBacklog(stranded);
        }
        for (SequenceInstance instance : placement.instances()) {
            if (instance.isUnavailable()) {
                stranded.addAll(instance.removeWaiting(SequenceEndReason.UNLOADED));
            }
        }
        stranded.forEach(request -> table.rejectLater(request, SchedulerErrors.stranded(request.checked())));
    }

    /** Removes an instance; returns the waiting requests if no instance is left for them. */
    List<ScheduledRequest> deregister(SequenceInstance instance) {
        placement.deregister(instance);
        List<ScheduledRequest> left = new ArrayList<>();
        if (!placement.hasInstances()) {
            drainBacklog(left);
        }
        refuseStranded();
        return left;
    }

    private void drainBacklog(List<ScheduledRequest> removed) {
        SequenceList backlog = placement.backlog();
        for (LiveSequence one = backlog.first(); one != null; one = backlog.first()) {
            removeAll(one, removed);
            table.endAfterWaiting(one, SequenceEndReason.UNLOADED);
        }
    }

    /**
     * Removes all waiting requests of the model. Their sequences end.
     *
     * @param live the sequences to which requests may be added
     * @param removed receives the requests
     */
    void drain(Collection<LiveSequence> live, List<ScheduledRequest> removed) {
        drainBacklog(removed);
        for (LiveSequence one : List.copyOf(live)) {
            removeAll(one, removed);
            table.endAfterWaiting(one, SequenceEndReason.UNLOADED);
        }
        placement.instances().forEach(instance -> removed.addAll(instance.removeWaiting(SequenceEndReason.UNLOADED)));
    }
}
