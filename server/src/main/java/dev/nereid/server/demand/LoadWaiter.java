package dev.nereid.server.demand;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.time.Timeout;
import java.util.OptionalLong;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A request that waits for the load of its model. It leaves its queue once: submitted, refused or cancelled, whichever
 * is first. Lock-free; safe for use by any thread.
 */
final class LoadWaiter implements Cancellation {
    private static final Logger LOG = LoggerFactory.getLogger(LoadWaiter.class);

    private final InferRequest request;
    private final long byteSize;
    private final ResponseObserver observer;
    private final long arrivedNanos;
    private final Submission submission;
    private final Consumer<LoadWaiter> whenLeft;
    private final Consumer<LoadWaiter> whenRemoved;
    private final AtomicBoolean removed = new AtomicBoolean();
    private final AtomicBoolean left = new AtomicBoolean();

    /** Set when the sequence of a cancelled request was ended. */
    private final AtomicBoolean ended = new AtomicBoolean();

    private volatile @Nullable Timeout timeout;

    // Both sides of a cancellation write first and read then.
    private volatile boolean cancelled;
    private volatile @Nullable Cancellation submitted;

    /**
     * Creates a waiting request.
     *
     * @param request the request; its memory belongs to this object
     * @param arrivedNanos when the server received it
     * @param submission takes the request when its model is loaded
     * @param whenLeft called once, when it waits no more, before its observer is notified
     * @param whenRemoved called once, when it needs no place in the queue any more; with {@code whenLeft} at the earliest
     */
    LoadWaiter(
            InferRequest request,
            ResponseObserver observer,
            long arrivedNanos,
            Submission submission,
            Consumer<LoadWaiter> whenLeft,
            Consumer<LoadWaiter> whenRemoved) {
        this.request = request;
        byteSize = byteSize(request);
        this.observer = observer;
        this.arrivedNanos = arrivedNanos;
        this.submission = submission;
        this.whenLeft = whenLeft;
        this.whenRemoved = whenRemoved;
    }

    static long byteSize(InferRequest request) {
        long bytes = 0;
        for (InputTensor input : request.inputs()) {
            bytes += input.data().byteSize();
        }
        return bytes;
    }

    /** Returns the bytes that the inputs had when the wait began. */
    long byteSize() {
        return byteSize;
    }

    /** Returns whether the deadline of the client has passed. */
    boolean isOverdue(long nowNanos) {
        OptionalLong deadline = request.options().deadlineNanos();
        return deadline.isPresent() && nowNanos - deadline.getAsLong() >= 0;
    }

    void endWith(Timeout scheduled) {
        timeout = scheduled;
        if (left.get()) {
            scheduled.close();
        }
    }

    private boolean leave(boolean cancels) {
        if (!left.compareAndSet(false, true)) {
            return false;
        }
        Timeout scheduled = timeout;
        if (scheduled != null) {
            scheduled.close();
        }
        if (!cancels || request.options().sequence().isEmpty()) {
            removed();
        }
        whenLeft.accept(this);
        return true;
    }

    private void removed() {
        if (removed.compareAndSet(false, true)) {
            whenRemoved.accept(this);
        }
    }

    /**
     * Returns whether the request keeps its place though it was cancelled: its sequence ends when its turn comes, since
     * later requests would execute after a gap.
     */
    boolean endsSequence() {
        return cancelled && request.options().sequence().isPresent();
    }

    /** Submits the request, unless it waits no more. Ends the sequence of one that was cancelled. */
    void submit() {
        if (!leave(false)) {
            endSequence();
            removed();
            return;
        }
        try {
            Cancellation handle = submission.submit(request, observer, arrivedNanos);
            submitted = handle;
            if (cancelled) {
                handle.cancel();
            }
        } catch (RuntimeException | Error e) { // of an observer: other requests go on
            LOG.atError()
                    .addKeyValue("model", request.model())
                    .setCause(e)
                    .log("waiting request not submitted (model '{}')", request.model());
        }
    }

    private void endSequence() {
        if (!endsSequence() || !ended.compareAndSet(false, true)) {
            return;
        }
        try {
            submission.cancelled(request, arrivedNanos);
        } catch (RuntimeException e) { // other requests go on
            LOG.atError()
                    .addKeyValue("model", request.model())
                    .setCause(e)
                    .log("sequence of cancelled request not ended (model '{}')", request.model());
        }
    }

    /** Refuses the request, unless it waits no more. */
    void refuse(InferenceException reason) {
        if (leave(false)) {
            submission.refuse(request, observer, reason);
        } else {
            removed();
        }
    }

    @Override
    public void cancel() {
        cancelled = true;
        if (leave(true)) {
            request.release().run();
            try {
                observer.onError(SchedulerErrors.cancelled());
            } catch (RuntimeException e) {
                LOG.atWarn()
                        .addKeyValue("model", request.model())
                        .setCause(e)
                        .log("observer failed (model '{}')", request.model());
            }
        }
        Cancellation handle = submitted;
        if (handle != null) {
            handle.cancel();
        }
    }
}
