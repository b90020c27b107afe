package dev.nereid.scheduler.oracle;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.StateSink;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One execution of a request of a sequence, with its control inputs and states. Confined like {@link Executable}.
 */
final class SequenceExecution implements Executable, Runnable {
    /** The row of a request that may have any. */
    static final int ANY_ROW = -1;

    private final SequenceExecutions owner;
    private final LiveSequence sequence;
    private final ScheduledRequest request;
    private final List<NamedTensor> added;
    private final int controls;
    private final int row;

    /** The execution of the same batch that was released after this one. */
    private @Nullable SequenceExecution next;

    /** The last execution behind this one; itself if there is none. Set in the first execution of a batch alone. */
    private SequenceExecution last = this;

    /**
     * Creates an execution that has not begun.
     *
     * @param owner ends it
     * @param added the control inputs, and behind them the states
     * @param controls the number of control inputs
     * @param row the place in the batch; {@link #ANY_ROW} if others may take it
     */
    SequenceExecution(
            SequenceExecutions owner,
            LiveSequence sequence,
            ScheduledRequest request,
            List<NamedTensor> added,
            int controls,
            int row) {
        this.owner = owner;
        this.sequence = sequence;
        this.request = request;
        this.added = added;
        this.controls = controls;
        this.row = row;
    }

    @Override
    public ScheduledRequest request() {
        return request;
    }

    int row() {
        return row;
    }

    @Override
    public List<NamedTensor> added() {
        return added;
    }

    @Override
    public @Nullable ReferenceCountedMemory memory(int index) {
        SequenceStates states = sequence.states();
        if (states != null && index >= controls) {
            return states.memory(index - controls);
        }
        LiveSequence.IdTensor id = sequence.idTensor();
        return id != null && added.get(index).tensor() == id.tensor() ? id.memory() : null;
    }

    @Override
    public @Nullable StateSink states() {
        return sequence.states();
    }

    @Override
    public @Nullable Executable inPlace(Executable like) {
        return row == ANY_ROW ? null : owner.nullRequest(like);
    }

    @Override
    public @Nullable Runnable released(boolean rescheduled, @Nullable Runnable before) {
        Runnable release = rescheduled ? before : behind(before); // a rescheduled one is a waiting request now
        SequenceStates states = sequence.states();
        boolean ended = false;
        try {
            if (states != null) {
                states.endUse();
            }
            ended = true;
        } finally {
            if (!ended && !rescheduled && before == null) { // the caller has no other reference to it
                run();
            }
        }
        return release;
    }

    /** Adds this execution behind the released ones; returns the first of all. */
    private Runnable behind(@Nullable Runnable before) {
        if (before instanceof SequenceExecution first) {
            first.last.next = this;
            first.last = this;
            return first;
        }
        return this;
    }

    /** Ends this execution, and the executions of the same batch that were released after it. */
    @Override
    public void run() {
        owner.released(this);
    }

    /** Returns the execution of the batch that was released after this one; {@code null} for none. */
    @Nullable
    SequenceExecution next() {
        return next;
    }

    LiveSequence sequence() {
        return sequence;
    }
}
