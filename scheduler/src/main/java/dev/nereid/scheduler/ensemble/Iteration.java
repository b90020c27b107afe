package dev.nereid.scheduler.ensemble;

import java.util.ArrayDeque;
import java.util.Deque;
import org.jspecify.annotations.Nullable;

/**
 * One run through the steps of one depth. The request begins the first one, each response of a decoupled step one more.
 * Confined to the {@link DataFlow}.
 */
final class Iteration {
    private final @Nullable Iteration parent;
    private final int depth;

    /** The values of the tensors of this depth that are still read here or below. */
    private final @Nullable TensorValue[] values;

    /** The number of outstanding reads of each value. */
    private final int[] reads;

    /** The inputs that each step of this depth still lacks. */
    private final int[] missing;

    /** The iterations that follow from responses of the decoupled step of this depth, in the order of the responses. */
    private final Deque<Iteration> children = new ArrayDeque<>(2);

    private final long bytes;
    private final boolean isLast;
    private long outputBytes;
    private int openSteps;
    private int missingOutputs;
    private boolean answered;
    private boolean ended;

    /**
     * Creates an iteration without values.
     *
     * @param parent the iteration of the decoupled step; {@code null} for the first
     * @param bytes the size of the response that began it
     * @param isFinal whether the decoupled step marked that response as its final one
     */
    Iteration(EnsemblePlan plan, @Nullable Iteration parent, long bytes, boolean isFinal) {
        this.parent = parent;
        this.bytes = bytes;
        isLast = isFinal && (parent == null || parent.isLast);
        depth = parent == null ? 0 : parent.depth + 1;
        values = new @Nullable TensorValue[plan.tensorCount()];
        reads = new int[plan.tensorCount()];
        missing = new int[plan.stepCount()];
    }

    @Nullable
    Iteration parent() {
        return parent;
    }

    int depth() {
        return depth;
    }

    /** Returns the size of the response that began the iteration. */
    long bytes() {
        return bytes;
    }

    /** Returns whether it follows from final responses alone, so that no other iteration comes behind it. */
    boolean isLast() {
        return isLast;
    }

    /** Adds the outputs of a step of this depth that is not decoupled. */
    void addOutputs(long byteSize) {
        outputBytes += byteSize;
    }

    long outputBytes() {
        return outputBytes;
    }

    Deque<Iteration> children() {
        return children;
    }

    /** Returns the iteration of a smaller depth, or this one, to which this one belongs. */
    Iteration at(int level) {
        Iteration found = this;
        while (found.depth > level && found.parent != null) {
            found = found.parent;
        }
        return found;
    }

    /** Returns the value of a tensor of this depth; {@code null} if it has none yet. */
    @Nullable
    TensorValue value(int tensor) {
        return values[tensor];
    }

    /** Sets a value, which is owned until it was read a number of times. */
    void set(int tensor, TensorValue value, int times) {
        if (times == 0) {
            value.release();
            return;
        }
        values[tensor] = value;
        reads[tensor] = times;
    }

    /** Counts a read of a value; releases it after the last one. */
    void read(int tensor) {
        TensorValue value = values[tensor];
        if (value != null && --reads[tensor] == 0) {
            values[tensor] = null;
            value.release();
        }
    }

    /** Releases all values, here and below. */
    void release() {
        for (int i = 0; i < values.length; i++) {
            TensorValue value = values[i];
            if (value != null) {
                values[i] = null;
                value.release();
            }
        }
        for (Iteration child = children.poll(); child != null; child = children.poll()) {
            child.release();
        }
    }

    void expectInputs(int step, int count) {
        missing[step] = count;
    }

    /** Counts an input of a step; returns whether it was the last that the step lacked. */
    boolean hasAllInputs(int step) {
        return --missing[step] == 0;
    }

    void expect(int steps, int outputs) {
        openSteps = steps;
        missingOutputs = outputs;
    }

    void outputArrived() {
        missingOutputs--;
    }

    void stepEnded() {
        openSteps--;
    }

    /** Marks the decoupled step of this depth as ended: it has no more responses. */
    void end() {
        ended = true;
    }

    void answer() {
        answered = true;
    }

    /** Returns whether all requested outputs are present, and were not answered. */
    boolean isAnswerable() {
        return !answered && missingOutputs == 0;
    }

    /**
     * Returns whether nothing more happens here and below.
     *
     * @param answers whether there is a response for each iteration of this depth
     * @param decoupled whether a decoupled step leads from this depth to the next
     */
    boolean isFinished(boolean answers, boolean decoupled) {
        return openSteps == 0 && (!answers || answered) && (!decoupled || (ended && children.isEmpty()));
    }
}
