package dev.nereid.scheduler.request;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;

/**
 * The life-cycle state of a request, and the reference count of its memory. Lock-free; safe for use by any thread.
 *
 * <p><b>One answer.</b> A call goes from waiting through executing to answered, or from waiting straight to answered;
 * there is no other step, and each is one compare-and-set. All that may end a call race for the step to answered; the
 * one that takes it answers, all others do nothing. What a thread wrote before its step is seen by whoever finds the
 * step taken.
 *
 * <p><b>One release.</b> The count of users begins at one. A user that is still one may add another; so the count
 * reaches zero once, and whoever brings it there sees all that the other users did.
 */
final class CompletionLatch {
    private static final int WAITING = 0;
    private static final int EXECUTING = 1;
    private static final int COMPLETED = 2;

    private static final VarHandle STEP;
    private static final VarHandle USERS;

    static {
        try {
            MethodHandles.Lookup lookup = MethodHandles.lookup();
            STEP = lookup.findVarHandle(CompletionLatch.class, "step", int.class);
            USERS = lookup.findVarHandle(CompletionLatch.class, "users", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private volatile int step = WAITING;
    private volatile int users = 1;

    /** Says whether the call waits for its execution. */
    boolean isWaiting() {
        return step == WAITING;
    }

    /** Says whether the call is with its backend, and not answered. */
    boolean isExecuting() {
        return step == EXECUTING;
    }

    /** Says whether it is settled how the call ends. */
    boolean isCompleted() {
        return step == COMPLETED;
    }

    /**
     * Takes the step from waiting to executing.
     *
     * @return whether this call of the method took it
     */
    boolean begin() {
        return STEP.compareAndSet(this, WAITING, EXECUTING);
    }

    /**
     * Takes the step from waiting to answered.
     *
     * @return whether this call of the method took it; if so, its caller answers
     */
    boolean completeWaiting() {
        return STEP.compareAndSet(this, WAITING, COMPLETED);
    }

    /**
     * Takes the step from executing to answered.
     *
     * @return whether this call of the method took it; if so, its caller answers
     */
    boolean completeExecuting() {
        return STEP.compareAndSet(this, EXECUTING, COMPLETED);
    }

    /** Adds a user; to be called by a user only. */
    void retain() {
        USERS.getAndAdd(this, 1);
    }

    /**
     * Adds a user; any thread may call this.
     *
     * @return {@code false} if there was none any more
     */
    boolean tryRetain() {
        int count = users;
        while (count > 0 && !USERS.compareAndSet(this, count, count + 1)) {
            count = users;
        }
        return count > 0;
    }

    /**
     * Takes a user away.
     *
     * @return whether it was the last one
     */
    boolean release() {
        return (int) USERS.getAndAdd(this, -1) == 1;
    }
}
