package dev.nereid.scheduler.request;

import dev.nereid.api.statistics.FailureReason;
import dev.nereid.spi.CancelHook;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/**
 * The cancellation state of one request, and the cancel actions of its backend. Lock-free; safe for use by any thread.
 *
 * <p><b>Against the answer.</b> {@code actions} is null for most calls. An answer steps the {@link CompletionLatch} and
 * then reads {@code actions}; a withdrawal writes {@code actions} and then reads the latch. Both are volatile, so at
 * least one sees the other, and {@link CancelActions} puts them in order.
 */
final class CancellationState {
    private static final VarHandle ACTIONS;

    static {
        try {
            ACTIONS = MethodHandles.lookup().findVarHandle(CancellationState.class, "actions", CancelActions.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    private volatile @Nullable CancelActions actions;
    private volatile boolean requested;

    /** What is told if it was not the client who asked. */
    private volatile ResponseEvent.@Nullable Failure failure;

    /** Takes note that the client withdraws the call. */
    void request() {
        requested = true;
    }

    /**
     * Takes note that somebody else withdraws the call, unless the client did.
     *
     * @param told what the client is told
     */
    void request(ResponseEvent.Failure told) {
        if (!requested) {
            failure = told;
            requested = true;
        }
    }

    /** Returns what the client is told of the withdrawal. */
    ResponseEvent.Failure failure() {
        ResponseEvent.Failure told = failure;
        return told == null ? new ResponseEvent.Failure(SchedulerErrors.cancelled(), FailureReason.CANCELED) : told;
    }

    /** Says whether the call was withdrawn. */
    boolean isRequested() {
        return requested;
    }

    /** Has the backend hear of the withdrawal, if the call is with it. */
    void notifyBackend(CompletionLatch latch) {
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
