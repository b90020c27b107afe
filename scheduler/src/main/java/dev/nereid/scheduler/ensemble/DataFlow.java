package dev.nereid.scheduler.ensemble;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.ensemble.DataFlow.Ready;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Iterator;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * The values, steps and responses of one request to an ensemble. Confined to its {@link EnsembleRun}.
 *
 * <p>A step is ready when all tensors that it reads have values, in its own iteration and in the iterations of smaller
 * depth to which its iteration belongs. So a response of a decoupled step is joined by its number with values that were
 * computed from it, and with values from before the step. Responses of the ensemble come in the order of these numbers.
 *
 * <p>A value is released when the last step that reads it was given it, and has ended.
 */
final class DataFlow {
    /** A step that has all its inputs in one iteration. */
    record Ready(StepPlan step, Iteration iteration) {}

    /** The bytes that a response counts beside its outputs. */
    private static final long RESPONSE_BYTES = 512;

    private final EnsemblePlan plan;
    private final OutputSelection selection;
    private final Iteration root;
    private final Deque<Ready> ready = new ArrayDeque<>(2);

    /** The steps that wait for memory; {@code null} where no step is decoupled, and each runs at most once. */
    private final @Nullable HeldSteps held;

    private long bufferedBytes;
    private int iterations;

    DataFlow(EnsemblePlan plan, OutputSelection selection) {
        this.plan = plan;
        this.selection = selection;
        root = new Iteration(plan, null, 0, true);
        held = selection.depth() == 0 ? null : new HeldSteps(plan);
        expect(root);
    }

    /** Begins with the values of the ensemble's inputs, in the order of the configuration. */
    void begin(TensorValue[] inputs) {
        for (int i = 0; i < inputs.length; i++) {
            set(root, plan.input(i), inputs[i]);
        }
    }

    /** Returns the next step to be submitted; {@code null} if none is ready, or all ready ones wait for memory. */
    @Nullable
    Ready nextReady() {
        return held == null ? ready.poll() : held.next(this, ready);
    }

    /** Returns whether ready steps wait for memory. */
    boolean holdsSteps() {
        return held != null && !held.isEmpty();
    }

    /** Returns whether the next response of the ensemble needs an iteration. */
    boolean isNext(Iteration iteration) {
        Iteration next = root;
        while (next != null && !next.equals(iteration)) {
            next = next.children().peekFirst();
        }
        return next != null;
    }

    TensorValue value(Ready step, int tensor) {
        return value(step.iteration(), tensor);
    }

    private TensorValue value(Iteration iteration, int tensor) {
        return requireNonNull(iteration.at(plan.depth(tensor)).value(tensor), "value");
    }

    /** Marks the inputs of a ready step as read; the step has references to them. */
    void markRead(Ready step) {
        for (int tensor : step.step().tensors()) {
            if (plan.depth(tensor) == step.iteration().depth()) {
                step.iteration().read(tensor);
            }
        }
    }

    /** Adds a response of a step; takes over its values of mapped outputs. {@code isFinal} if the step marked it so. */
    void responded(Ready from, TensorValue[] values, boolean isFinal) {
        StepPlan step = from.step();
        Iteration target = from.iteration();
        if (step.decoupled()) {
            target = next(from.iteration(), values, isFinal);
        } else if (held != null) {
            held.responded(from, byteSize(values));
        }
        for (int i = 0; i < values.length; i++) {
            set(target, step.outputTensors()[i], values[i]);
        }
    }

    private Iteration next(Iteration parent, TensorValue[] values, boolean isFinal) {
        long bytes = byteSize(values);
        Iteration next = new Iteration(plan, parent, bytes, isFinal);
        bufferedBytes += bytes;
        iterations++;
        expect(next);
        parent.children().add(next);
        return next;
    }

    private static long byteSize(TensorValue[] values) {
        long bytes = RESPONSE_BYTES;
        for (TensorValue value : values) {
            bytes += value.byteSize();
        }
        return bytes;
    }

    void ended(Ready step) {
        if (held != null) {
            held.ended(step);
        }
        step.iteration().stepEnded();
        if (step.step().decoupled()) {
            step.iteration().end();
        }
        checkFinished(step.iteration());
    }

    private void expect(Iteration iteration) {
        int[] steps = selection.steps(iteration.depth());
        for (int step : steps) {
            iteration.expectInputs(step, lacking(iteration, plan.step(step).tensors()));
        }
        int outputs = iteration.depth() == selection.depth() ? lacking(iteration, selection.outputs()) : 0;
        iteration.expect(steps.length, outputs);
    }

    private int lacking(Iteration iteration, int[] tensors) {
        int count = 0;
        for (int tensor : tensors) {
            if (iteration.at(plan.depth(tensor)).value(tensor) == null) {
                count++;
            }
        }
        return count;
    }

    private void set(Iteration iteration, int tensor, TensorValue value) {
        iteration.set(tensor, value, selection.reads(tensor) + (selection.isReadDeeper(tensor) ? 1 : 0));
        for (int reader : selection.readers(tensor)) {
            StepPlan step = plan.step(reader);
            forEach(iteration, step.depth(), at -> {
                if (at.hasAllInputs(reader)) {
                    ready.add(new Ready(step, at));
                }
            });
        }
        if (selection.isRequested(tensor)) {
            forEach(iteration, selection.depth(), Iteration::outputArrived);
        }
    }

    /** Visits the iterations of a depth that belong to an iteration. */
    private static void forEach(Iteration iteration, int depth, Consumer<Iteration> action) {
        if (iteration.depth() == depth) {
            action.accept(iteration);
            return;
        }
        for (Iteration child : iteration.children()) {
            forEach(child, depth, action);
        }
    }

    /** Returns the iteration of the next response; {@code null} if its outputs are missing. */
    @Nullable
    Iteration nextAnswer() {
        Iteration next = root;
        while (next != null && next.depth() < selection.depth()) {
            next = next.children().peekFirst();
        }
        return next != null && next.isAnswerable() ? next : null;
    }

    /** Returns the value of a requested output in an iteration that can be answered. */
    TensorValue output(Iteration iteration, int tensor) {
        return value(iteration, tensor);
    }

    /** Marks an iteration as answered; the response has references to the values. */
    void answered(Iteration iteration) {
        iteration.answer();
        for (int tensor : selection.outputs()) {
            if (plan.depth(tensor) == iteration.depth()) {
                iteration.read(tensor);
            }
        }
        checkFinished(iteration);
    }

    private void checkFinished(Iteration changed) {
        Iteration iteration = changed;
        while (iteration != null && isFinished(iteration)) {
            releaseDeeperReads(iteration);
            Iteration parent = iteration.parent();
            if (parent != null && parent.children().remove(iteration)) {
                bufferedBytes -= iteration.bytes();
                if (held != null) {
                    held.finished(iteration);
                }
                iterations--;
            }
            iteration = parent;
        }
    }

    private boolean isFinished(Iteration iteration) {
        int depth = iteration.depth();
        return iteration.isFinished(depth == selection.depth(), selection.isDecoupled(depth));
    }

    private void releaseDeeperReads(Iteration iteration) {
        for (int tensor = 0; tensor < plan.tensorCount(); tensor++) {
            if (plan.depth(tensor) == iteration.depth() && selection.isReadDeeper(tensor)) {
                iteration.read(tensor);
            }
        }
    }

    /** Returns the bytes of responses of decoupled steps that have unfinished iterations. */
    long bufferedBytes() {
        return bufferedBytes;
    }

    /** Returns the bytes of outputs of other steps in iterations that are not finished. */
    long outputBytes() {
        return held == null ? 0 : held.bufferedBytes();
    }

    /** Returns the number of iterations that responses of decoupled steps began and that are not finished. */
    int iterations() {
        return iterations;
    }

    /** Releases all values, since no further step runs. */
    void release() {
        ready.clear();
        if (held != null) {
            held.clear();
        }
        root.release();
    }

    /**
     * Delays ready steps while their outputs would exceed the bytes that a request may buffer. Confined to the
     * {@link DataFlow}.
     *
     * <p>Outputs of an iteration wait while an earlier iteration is slow. The steps of the iteration with the next response
     * are never held, so the request goes on whatever the sizes are. For the other steps, outputs of steps in flight count
     * as much as the largest of the same step so far, at first as much as in an earlier request. Before any response of a
     * step its outputs count nothing, so that a first request may exceed the limit.
     */
    private static final class HeldSteps {
        private final EnsemblePlan plan;
        private final Deque<Ready> steps = new ArrayDeque<>();
        private final int[] inFlight;

        /** The bytes of the largest outputs of each step so far. */
        private final long[] largest;

        /** The bytes of outputs of steps in iterations that are not finished. */
        private long buffered;

        HeldSteps(EnsemblePlan plan) {
            this.plan = plan;
            inFlight = new int[plan.stepCount()];
            largest = new long[plan.stepCount()];
            Arrays.setAll(largest, plan::lastOutputBytes);
        }

        /** Returns the next step to be submitted, of the held or else of the ready ones; {@code null} for none. */
        @Nullable
        Ready next(DataFlow flow, Deque<Ready> ready) {
            for (Iterator<Ready> held = steps.iterator(); held.hasNext(); ) {
                Ready step = held.next();
                if (admits(flow, step)) {
                    held.remove();
                    return begun(step);
                }
            }
            for (Ready step = ready.poll(); step != null; step = ready.poll()) {
                if (admits(flow, step)) {
                    return begun(step);
                }
                steps.add(step);
            }
            return null;
        }

        private Ready begun(Ready step) {
            inFlight[step.step().index()]++;
            return step;
        }

        private boolean admits(DataFlow flow, Ready step) {
            if (flow.isNext(step.iteration())) {
                return true;
            }
            long expected =
                    buffered + flow.bufferedBytes() + largest[step.step().index()];
            for (int i = 0; i < inFlight.length; i++) {
                expected += inFlight[i] * largest[i];
            }
            return expected <= plan.limits().maxBufferedBytes();
        }

        /** Counts the outputs of a step that is not decoupled. */
        void responded(Ready step, long bytes) {
            int index = step.step().index();
            largest[index] = Math.max(largest[index], bytes);
            plan.setLastOutputBytes(index, bytes);
            if (step.iteration().depth() > 0) {
                step.iteration().addOutputs(bytes);
                buffered += bytes;
            }
        }

        void ended(Ready step) {
            inFlight[step.step().index()]--;
        }

        void finished(Iteration iteration) {
            buffered -= iteration.outputBytes();
        }

        /** Returns the bytes of outputs of steps in iterations that are not finished. */
        long bufferedBytes() {
            return buffered;
        }

        boolean isEmpty() {
            return steps.isEmpty();
        }

        /** Drops the steps, since no further one runs. */
        void clear() {
            steps.clear();
        }
    }
}
