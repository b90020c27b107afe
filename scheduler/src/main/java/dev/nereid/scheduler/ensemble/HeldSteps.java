package dev.nereid.scheduler.ensemble;

import dev.nereid.scheduler.ensemble.DataFlow.Ready;
import java.util.ArrayDeque;
import java.util.Arrays;
import java.util.Deque;
import java.util.Iterator;
import org.jspecify.annotations.Nullable;

/**
 * Delays ready steps while their outputs would exceed the bytes that a request may buffer. Confined to the
 * {@link DataFlow}.
 *
 * <p>Outputs of an iteration wait while an earlier iteration is slow. The steps of the iteration with the next response
 * are never held, so the request goes on whatever the sizes are. For the other steps, outputs of steps in flight count
 * as much as the largest of the same step so far, at first as much as in an earlier request. Before any response of a
 * step its outputs count nothing, so that a first request may exceed the limit.
 */
final class HeldSteps {
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

    /**
     * Returns the next step that may be submitted, from the held steps or else from the ready ones; {@code null} for
     * none.
     */
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
        long expected = buffered + flow.bufferedBytes() + largest[step.step().index()];
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
