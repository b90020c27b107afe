package dev.nereid.scheduler.request;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * The life-cycle state of a request, and the reference count of its memory. Lock-free; safe for use by any thread.
 *
 * <p><b>One completion.</b> A request steps from waiting through executing to completed, or from waiting straight to
 * completed; there is no other step, and each is one compare-and-set. All causes of a completion race for the step to
 * completed; the thread that takes it completes the request, the others do nothing. Writes before a step are visible to
 * threads that see the step.
 *
 * <p><b>One release.</b> The reference count begins at one and rises only while it is above zero. So it reaches zero
 * once, and the thread that brings it there sees all writes before the other releases.
 */
final class CompletionLatch {
    private static final int WAITING = 0;
    private static final int EXECUTING = 1;
    private static final int COMPLETED = 2;

    private static final VarHandle STEP;
    private static final VarHandle REFERENCES;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            STEP = lookup.findVarHandle(CompletionLatch.class, "step", int.class);
            REFERENCES = lookup.findVarHandle(CompletionLatch.class, "references", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private volatile int step = WAITING;
    private volatile int references = 1;

    /** Returns whether the request waits for its execution. */
    boolean isWaiting() {
        return step == WAITING;
    }

    /** Returns whether the request is in execution, and not completed. */
    boolean isExecuting() {
        return step == EXECUTING;
    }

    /** Returns whether the request is completed. */
    boolean isCompleted() {
        return step == COMPLETED;
    }

    /**
     * Takes the step from waiting to executing.
     *
     * @return whether this invocation took it
     */
    boolean begin() {
        return STEP.compareAndSet(this, WAITING, EXECUTING);
    }

    /**
     * Takes the step from waiting to completed.
     *
     * @return whether this invocation took it; if so, its caller completes the request
     */
    boolean completeWaiting() {
        return STEP.compareAndSet(this, WAITING, COMPLETED);
    }

    /**
     * Takes the step from executing to completed.
     *
     * @return whether this invocation took it; if so, its caller completes the request
     */
    boolean completeExecuting() {
        return STEP.compareAndSet(this, EXECUTING, COMPLETED);
    }

    /** Adds a reference; the caller holds one. */
    void retain() {
        REFERENCES.getAndAdd(this, 1);
    }

    /**
     * Adds a reference; called by any thread.
     *
     * @return {@code false} if none was left
     */
    boolean tryRetain() {
        int count = references;
        while (count > 0 && !REFERENCES.compareAndSet(this, count, count + 1)) {
            count = references;
        }
        return count > 0;
    }

    /** Returns whether there is another reference than that of the caller. */
    boolean isShared() {
        return references > 1;
    }

    /**
     * Releases a reference.
     *
     * @return whether it was the last one
     */
    boolean release() {
        return (int) REFERENCES.getAndAdd(this, -1) == 1;
    }
}
