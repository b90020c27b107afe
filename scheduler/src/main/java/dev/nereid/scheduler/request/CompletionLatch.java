package dev.nereid.scheduler.request;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * Holds the life-cycle state of a request, and the reference count of its memory. Lock-free; safe for use by any
 * thread.
 *
 * <p><b>One completion.</b> A request steps from waiting to executing, and from there to completed; or back to waiting,
 * if it is rescheduled; or from waiting straight to completed. There is no other step, and each is one compare-and-set.
 * All causes of a completion race for the step to completed; the thread that takes it completes the request, the others
 * do nothing. Writes before a step are visible to threads that see the step.
 *
 * <p><b>Executions.</b> The word that holds the step also counts the executions. So a thread that belongs to an
 * execution names it, and cannot complete a request that is in a later execution by now.
 *
 * <p><b>One release.</b> The reference count begins at one and rises only while it is above zero. So it reaches zero
 * once, and the thread that brings it there sees all writes before the other releases.
 */
final class CompletionLatch {
    private static final int WAITING = 0;
    private static final int EXECUTING = 1;
    private static final int COMPLETED = 2;

    /** The bits of the step. The number of executions is above them. */
    private static final int STEP_BITS = 2;

    private static final int STEP_MASK = (1 << STEP_BITS) - 1;

    private static final VarHandle STATE;
    private static final VarHandle REFERENCES;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            STATE = lookup.findVarHandle(CompletionLatch.class, "state", int.class);
            REFERENCES = lookup.findVarHandle(CompletionLatch.class, "references", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private volatile int state = WAITING;
    private volatile int references = 1;

    /** {@code true} if an execution was lost. Written with a reference held, read by the last release. */
    private boolean lost;

    boolean isWaiting() {
        return (state & STEP_MASK) == WAITING;
    }

    /** Returns whether the request is in execution, and not completed. */
    boolean isExecuting() {
        return (state & STEP_MASK) == EXECUTING;
    }

    /** Returns whether the request is in a certain execution, and not completed. */
    boolean isExecuting(int execution) {
        return state == executing(execution);
    }

    boolean isCompleted() {
        return (state & STEP_MASK) == COMPLETED;
    }

    /** Returns the number of the current or last execution, from 1; 0 before the first. */
    int execution() {
        return state >>> STEP_BITS;
    }

    private static int executing(int execution) {
        return execution << STEP_BITS | EXECUTING;
    }

    /** Takes the step from waiting to executing, and counts the execution; returns whether it took the step. */
    boolean begin() {
        int current = state;
        return (current & STEP_MASK) == WAITING
                && STATE.compareAndSet(this, current, current + (1 << STEP_BITS) + EXECUTING - WAITING);
    }

    /** Takes the step from an execution back to waiting; returns {@code false} if the request is completed. */
    boolean reschedule(int execution) {
        return STATE.compareAndSet(this, executing(execution), execution << STEP_BITS | WAITING);
    }

    /**
     * Takes the step from waiting to completed.
     *
     * @return whether this invocation took it; if so, its caller completes the request. If not, the request did not
     *     wait at some moment of this invocation
     */
    boolean completeWaiting() {
        int current = state;
        while ((current & STEP_MASK) == WAITING) {
            if (STATE.compareAndSet(this, current, current + COMPLETED - WAITING)) {
                return true;
            }
            current = state; // it may be rescheduled, after another execution
        }
        return false;
    }

    /**
     * Takes the step from any execution to completed.
     *
     * @return whether this invocation took it; if so, its caller completes the request. If not, the request was not in
     *     execution at some moment of this invocation
     */
    boolean completeExecuting() {
        int current = state;
        while ((current & STEP_MASK) == EXECUTING) {
            if (STATE.compareAndSet(this, current, current + COMPLETED - EXECUTING)) {
                return true;
            }
            current = state;
        }
        return false;
    }

    /** Takes the step from one execution to completed; returns whether it did: its caller completes the request. */
    boolean completeExecuting(int execution) {
        return STATE.compareAndSet(this, executing(execution), execution << STEP_BITS | COMPLETED);
    }

    /** Adds a reference; the caller holds one. */
    void retain() {
        REFERENCES.getAndAdd(this, 1);
    }

    /** Adds a reference; returns {@code false} if none was left. Called by any thread. */
    boolean tryRetain() {
        int count = references;
        while (count > 0 && !REFERENCES.compareAndSet(this, count, count + 1)) {
            count = references;
        }
        return count > 0;
    }

    /** Returns whether there is a reference beside the caller's. */
    boolean isShared() {
        return references > 1;
    }

    /** Records that an execution of the request was lost; the caller holds a reference. */
    void lose() {
        lost = true;
    }

    /** Returns whether {@link #lose} was called; for the thread of the last release. */
    boolean isLost() {
        return lost;
    }

    int references() {
        return references;
    }

    /** Releases a reference; returns whether it was the last one. */
    boolean release() {
        return (int) REFERENCES.getAndAdd(this, -1) == 1;
    }
}
