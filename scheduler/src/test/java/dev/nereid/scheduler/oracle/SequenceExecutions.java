package dev.nereid.scheduler.oracle;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.statistics.SequenceEnds;
import java.util.List;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Begins and ends the executions of requests of sequences. Guarded by the lock of the sequences: the caller holds it,
 * unless a method says otherwise.
 */
final class SequenceExecutions {
    private static final Logger LOG = LoggerFactory.getLogger(SequenceExecutions.class);

    private final SequenceTable table;
    private final SequenceLock lock;
    private final SequenceInputs inputs;
    private final SequenceEnds ends;
    private final boolean iterative;

    /**
     * Creates executions of the sequences of a table.
     *
     * @param inputs makes the inputs of executions
     * @param ends counts the sequences that another one replaces
     * @param iterative whether each request is a sequence, which ends when it is not rescheduled
     */
    SequenceExecutions(
            SequenceTable table, SequenceLock lock, SequenceInputs inputs, SequenceEnds ends, boolean iterative) {
        this.table = table;
        this.lock = lock;
        this.inputs = inputs;
        this.ends = ends;
        this.iterative = iterative;
    }

    /** Returns whether no more requests are accepted, so that waiting requests go at once. */
    boolean isStopped() {
        return table.isStopped();
    }

    /** Returns whether no instance may take a batch. */
    boolean isHeld() {
        return table.placement().isHeld() && !table.isStopped();
    }

    /**
     * Begins the next request of a sequence.
     *
     * @param row its place in the batch; {@link SequenceExecution#ANY_ROW} if others may take it
     * @return {@code false} if it is completed: the thread that completes it is about to remove it
     */
    boolean begin(LiveSequence sequence, int row, InstanceHandle handle) {
        SequenceEntry entry = sequence.first();
        List<NamedTensor> added = inputs.of(sequence, entry, lock::later);
        ScheduledRequest request = entry.request();
        SequenceExecution execution = new SequenceExecution(this, sequence, request, added, inputs.controls(), row);
        handle.taken().add(execution);
        if (!request.begin()) {
            handle.taken().removeLast();
            return false;
        }
        request.delivery().takePlace();
        table.poll(sequence);
        if (entry.starts() && sequence.started) {
            SequenceEndReason reason = entry.endBefore;
            handle.ended().add(new InstanceHandle.EndedSequence(sequence.id(), SequenceTable.forBackend(reason)));
            ends.add(reason);
        }
        sequence.started = true;
        sequence.busy = true;
        sequence.responding = null;
        if (entry.ends()) {
            table.placement().vacate(sequence);
        }
        return true;
    }

    void removeInstance() {
        inputs.removeInstance();
    }

    Executable nullRequest(Executable like) {
        return inputs.nullRequest(like);
    }

    /**
     * Ends the last executions of requests of one batch; called by the thread that ends it, without the lock.
     *
     * @param first the first one, with the others behind it
     */
    void released(SequenceExecution first) {
        lock.lock();
        try {
            for (SequenceExecution each = first; each != null; each = each.next()) {
                releaseOne(each);
            }
        } finally {
            lock.unlock();
        }
    }

    private void releaseOne(SequenceExecution execution) {
        try {
            released(execution.sequence(), execution.request());
        } catch (RuntimeException e) { // the others of the batch are not affected
            LOG.atError()
                    .addKeyValue("model", inputs.modelName())
                    .setCause(e)
                    .log("end of a sequence's execution failed (model '{}')", inputs.modelName());
        }
    }

    private void released(LiveSequence sequence, ScheduledRequest request) {
        if (iterative) {
            table.endIteration(sequence, request.endsCancelled() ? SequenceEndReason.CANCELLED : SequenceEndReason.END);
        } else {
            sequence.busy = false;
            sequence.responding = request.delivery().isStreamOpen() ? request : null;
            table.becameFree(sequence);
        }
    }
}
