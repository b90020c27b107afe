package dev.nereid.scheduler.request;

import dev.nereid.api.statistics.FailureReason;
import dev.nereid.spi.CancelHook;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import org.jspecify.annotations.Nullable;

/**
 * The cancellation state of one request, and the cancel actions of its backend. Lock-free; safe for use by any thread.
 * {@link ScheduledRequest#cancel} sets it, and completes the request unless it is executing.
 *
 * <p><b>Race with the completion.</b> {@code actions} is null for most requests. A completion steps the
 * {@link CompletionLatch} and then reads {@code actions}; a cancellation writes {@code actions} and then reads the
 * latch. Both are volatile, so at least one sees the other, and {@link CancelActions} orders them.
 *
 * <p><b>Reschedule.</b> Each execution has its own {@link CancelActions}. Before the request is rescheduled, the
 * actions of the execution are closed and replaced by {@link CancelActions#CLOSED}, so that a late thread of the
 * backend adds nothing; after the step back to waiting they are removed. If actions ran by then, the request is
 * cancelled and not rescheduled. A cancellation that comes later finds the request waiting, or is found by the thread
 * that queues it.
 *
 * <p><b>Shield.</b> A step of a sequence counts once it executes. The backend of such a request does not see a
 * cancellation by the client, so that it does not stop before it updates the state. It sees that the server stops
 * waiting for the request.
 *
 * <p><b>Race with an execution.</b> A cancellation also reaches an execution that begins meanwhile: the canceller sets
 * {@code requested} and then reads the actions, perhaps of the execution before; {@link #onCancel} adds an action and
 * then reads {@code requested}. Both are volatile, so at least one of the two runs the action.
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

    /** {@code true} if the server stopped waiting for the request, so that its backend is notified in any case. */
    private volatile boolean abandoned;

    /** {@code true} if the backend is not notified when the client cancels. Written before the request is queued. */
    private boolean shielded;

    /** The failure to deliver if the server cancelled the request, not the client. */
    private volatile ResponseEvent.@Nullable Failure failure;

    /** Records that the client cancels the request. */
    void request() {
        requested = true;
    }

    /** Records that the server cancels the request, unless the client did, and the failure to deliver. */
    void request(ResponseEvent.Failure reported) {
        if (!requested) {
            failure = reported;
            requested = true;
        }
        abandoned = true;
    }

    /** Hides cancellations of the client from the backend. Called before the request is queued. */
    void shield() {
        shielded = true;
    }

    /** Returns whether the request is cancelled as far as its backend is concerned. */
    boolean isNotified() {
        return shielded ? abandoned : requested;
    }

    /** Returns the failure with which the cancelled request completes. */
    ResponseEvent.Failure failure() {
        ResponseEvent.Failure current = failure;
        return current == null
                ? new ResponseEvent.Failure(SchedulerErrors.cancelled(), FailureReason.CANCELED)
                : current;
    }

    boolean isRequested() {
        return requested;
    }

    /** Notifies the backend of the cancellation, if the request is in execution and its backend may know. */
    void notifyBackend(CompletionLatch latch) {
        if (latch.isExecuting() && isNotified()) {
            CancelActions current = actions();
            if (latch.isExecuting()) {
                current.cancel();
            }
        }
    }

    /** Registers an action that runs when the request is cancelled during an execution, as the SPI describes. */
    CancelHook onCancel(Runnable action, CompletionLatch latch, int execution) {
        if (latch.isExecuting(execution)) {
            CancelActions current = actions();
            if (latch.isExecuting(execution)) {
                CancelHook hook = current.add(action);
                if (isNotified()) {
                    current.cancel(); // the canceller may have seen an earlier execution
                }
                return hook;
            }
        }
        return () -> {};
    }

    /**
     * Returns the cancel actions, which order themselves with the completion; {@code null} if there are none. Called
     * after the step of the latch.
     */
    @Nullable
    CancelActions existing() {
        return actions;
    }

    /** Returns whether no cancel action runs or will run. Called after the delivery of the completion. */
    boolean areActionsDone() {
        CancelActions current = actions;
        return current == null || current.areDone();
    }

    /**
     * Closes the cancel actions of the current execution, so that the request can be rescheduled. Called by the thread
     * that ends the execution.
     *
     * @return {@code false} if actions ran: the request has to be completed as cancelled
     */
    boolean closeActions() {
        CancelActions current = actions;
        while (current == null) {
            if (ACTIONS.compareAndSet(this, null, CancelActions.CLOSED)) {
                return true;
            }
            current = actions;
        }
        if (!current.closeUnlessCancelled()) {
            return false;
        }
        actions = CancelActions.CLOSED; // only this thread replaces existing ones
        return true;
    }

    /** Removes the closed actions of the last execution. Called after the step of the latch to waiting. */
    void openActions() {
        actions = null;
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
