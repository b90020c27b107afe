package dev.nereid.scheduler.sequence;

import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.request.Executable;
import java.util.List;

/**
 * The direct strategy: the place of a sequence in each batch is its slot. Slots without a request, or with a request
 * that cannot share the batch, have a null request. Guarded by the lock of the sequences.
 *
 * <p>A batch ends with the last slot that has a request. It is taken when the first request has waited for the maximum
 * delay, or when enough slots have a request.
 */
final class DirectSlots implements SlotStrategy {
    private final SequenceExecutions executions;
    private final Slots slots;
    private final EqualInputs equalInputs;
    private final long maxDelayNanos;
    private final float minimumUtilization;

    DirectSlots(SequenceExecutions executions, Slots slots, EqualInputs equalInputs, SequencePlan plan) {
        this.executions = executions;
        this.slots = slots;
        this.equalInputs = equalInputs;
        this.maxDelayNanos = plan.minimumSlotUtilization() > 0 ? plan.maxQueueDelayNanos() : 0;
        this.minimumUtilization = plan.minimumSlotUtilization();
    }

    @Override
    public void changed(LiveSequence sequence, long now) {}

    @Override
    public void endHold() {}

    @Override
    public void close() {
        executions.removeInstance();
    }

    @Override
    public boolean isEmpty() {
        return executions.isHeld() || !hasReady();
    }

    private boolean hasReady() {
        for (int slot = 0; slot < slots.limit(); slot++) {
            LiveSequence sequence = slots.get(slot);
            if (sequence != null && sequence.isReady()) {
                return true;
            }
        }
        return false;
    }

    @Override
    public boolean hasBatch(long now, boolean hurry) {
        return !executions.isHeld() && remainingDelay(now, hurry) <= 0;
    }

    @Override
    public long waitNanos(long now) {
        long delay = remainingDelay(now, false);
        return delay == Long.MAX_VALUE ? 0 : delay; // the requests were cancelled meanwhile
    }

    /** Returns how long the requests have to wait for others; {@link Long#MAX_VALUE} if there are none. */
    private long remainingDelay(long now, boolean hurry) {
        int ready = 0;
        long waited = Long.MIN_VALUE;
        for (int slot = 0; slot < slots.limit(); slot++) {
            LiveSequence sequence = slots.get(slot);
            if (sequence != null && sequence.isReady()) {
                ready++;
                waited = Math.max(waited, now - sequence.first().request().enqueuedNanos());
            }
        }
        if (ready == 0) {
            return Long.MAX_VALUE;
        }
        boolean enough = maxDelayNanos == 0 || (float) ready / slots.capacity() >= minimumUtilization;
        return hurry || enough ? 0 : Math.max(0, maxDelayNanos - waited);
    }

    @Override
    public void take(InstanceHandle handle, long now, boolean hurry) {
        if (!hasBatch(now, hurry)) {
            return;
        }
        List<Executable> taken = handle.taken();
        LiveSequence first = null;
        SequenceEntry template = null;
        int rows = 0;
        for (int slot = 0; slot < slots.limit(); slot++) {
            LiveSequence sequence = slots.get(slot);
            if (sequence == null || !sequence.isReady()) {
                continue;
            }
            SequenceEntry entry = sequence.first();
            boolean joins = first == null
                    || template == null
                    || (sequence.joins(first, true) && equalInputs.join(template, entry));
            if (!joins || executions.begin(sequence, slot, handle)) {
                rows = slot + 1;
                first = first == null ? sequence : first;
                template = template == null ? entry : template;
            }
        }
        Executable like = rows == 0 ? null : taken.getFirst();
        for (int row = 0; like != null && row < rows; row++) {
            if (row >= taken.size() || row(taken.get(row)) != row) {
                taken.add(row, executions.nullRequest(like));
            }
        }
    }

    private static int row(Executable inputs) {
        return inputs instanceof SequenceExecution execution ? execution.row() : SequenceExecution.ANY_ROW;
    }
}
