package dev.nereid.scheduler;

import dev.nereid.api.FailureReason;
import dev.nereid.spi.CancelHook;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/**
 * Whether one call was withdrawn, and what its backend wants done then. Lock-free; safe for use by any thread.
 *
 * <p><b>Against the answer.</b> {@code actions} is null for most calls. An answer steps the {@link CompletionLatch} and
 * then reads {@code actions}; a withdrawal writes {@code actions} and then reads the latch. Both are volatile, so at
 * least one sees the other, and {@link CancelActions} puts them in order.
 */
final class Withdrawal {
    private static final VarHandle ACTIONS;

    static {
        try {
            ACTIONS = MethodHandles.lookup().findVarHandle(Withdrawal.class, "actions", CancelActions.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private volatile @Nullable CancelActions actions;
    private volatile boolean asked;

    /** What is told if it was not the client who asked. */
    private volatile Answer.@Nullable Failure answer;

    /** Takes note that the client withdraws the call. */
    void ask() {
        asked = true;
    }

    /**
     * Takes note that somebody else withdraws the call, unless the client did.
     *
     * @param told what the client is told
     */
    void ask(Answer.Failure told) {
        if (!asked) {
            answer = told;
            asked = true;
        }
    }

    /** Returns what the client is told of the withdrawal. */
    Answer.Failure answer() {
        Answer.Failure told = answer;
        return told == null ? new Answer.Failure(SchedulerErrors.cancelled(), FailureReason.CANCELED) : told;
    }

    /** Says whether the call was withdrawn. */
    boolean isAsked() {
        return asked;
    }

    /** Has the backend hear of the withdrawal, if the call is with it. */
    void tellBackend(CompletionLatch latch) {
        if (latch.isExecuting()) {
            CancelActions current = actions();
            if (latch.isExecuting()) {
                current.cancel();
            }
        }
    }

    /** Has an action run when the client withdraws the call, as the SPI says. */
    CancelHook onCancel(Runnable action, CompletionLatch latch) {
        if (latch.isExecuting()) {
            CancelActions current = actions();
            if (latch.isExecuting()) {
                return current.add(action);
            }
        }
        return () -> {};
    }

    /**
     * Returns what orders actions and answer; {@code null} if there is no action. To be called after the latch stepped.
     */
    @Nullable
    CancelActions existing() {
        return actions;
    }

    private CancelActions actions() {
        CancelActions current = actions;
        if (current != null) {
            return current;
        }
        CancelActions made = new CancelActions();
        return ACTIONS.compareAndSet(this, null, made) ? made : actions();
    }
}
