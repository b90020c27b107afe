package dev.nereid.scheduler.request;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.statistics.ExecutionTally;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One request from its arrival to the release of its memory. Lock-free; safe for use by any thread. Its backend sees an
 * {@code ExecutedRequest}; its {@link ResponseDelivery} calls its observer.
 *
 * <p><b>One completion.</b> Response, error, cancellation, timeout and shutdown race for the last step of a
 * {@link CompletionLatch}. The thread that takes the step counts the request and then calls the observer. A waiting
 * request that is cancelled leaves its queue and completes at once; it can no longer begin, so it never reaches a
 * backend. A request that is cancelled during its execution completes when its backend is done with it, and always as
 * cancelled: also if the backend responds with outputs, or with an error caused by the interruption. If the server
 * stops waiting for a request, the thread that abandons it completes it at once, and holds a reference to it meanwhile.
 *
 * <p><b>Memory.</b> References keep the inputs alive: one of the queue or execution, one of each response, and one of
 * the stream of a decoupled model. The last release frees the inputs and ends the count of the request as in flight.
 * Outputs may therefore lie in inputs, and while no request is in flight no thread reads memory of the model. The end of
 * an execution frees the inputs earlier, if no output lies in them ({@link #freeInputs}).
 */
public final class ScheduledRequest implements Cancellation {
    private final ModelScope model;
    private final CheckedRequest checked;
    private final long enqueuedNanos;
    private final ResponseDelivery delivery;
    private final CompletionLatch latch = new CompletionLatch();
    private final CancellationState cancellation = new CancellationState();

    /** Whether the request is among the detached requests. It is removed from them at its end. */
    private volatile boolean detached;

    /** When the execution began; written before the backend sees the request. */
    private long startedNanos;

    /** Whether only instance threads may execute the request. It needs more work than its execution then. */
    private boolean heavy;

    /**
     * The last position in a queue. A queue writes it and then checks that the request still waits; a thread that
     * completes a waiting request takes the step of the latch and then reads it. Both are volatile, so that at least
     * one sees the other.
     */
    private volatile @Nullable QueuePosition position;

    /** Counts the requests that use the instance; written before the backend sees the request. */
    private @Nullable RequestDrain instanceDrain;

    /** The request's bytes in the load; below 0 if it is not counted as load. Set before the request is queued. */
    private long loadBytes = -1;

    /** The inputs as the backend sees them, if they differ from the request's. Set before the backend sees them. */
    private InputStaging.@Nullable Staged staged;

    /** Whether an output lies in the inputs. Written during the execution, before its end. */
    private boolean inputsKept;

    /** Whether the inputs were freed before the last release. Written by the holder of a reference. */
    private boolean inputsFreed;

    /**
     * Counts the request as in flight, and takes ownership of its memory. The caller offers it to the queue.
     *
     * @param order orders the responses of the model; {@code null} if the model preserves no order
     * @param enqueuedNanos when it is queued
     */
    public ScheduledRequest(
            ModelScope model,
            @Nullable ResponseOrder order,
            CheckedRequest checked,
            ResponseObserver observer,
            long enqueuedNanos) {
        this.model = model;
        this.checked = checked;
        this.delivery = new ResponseDelivery(this, observer, order);
        this.enqueuedNanos = enqueuedNanos;
        model.drain().register();
    }

    public ModelScope model() {
        return model;
    }

    public CheckedRequest checked() {
        return checked;
    }

    /** Returns the delivery of its responses. */
    public ResponseDelivery delivery() {
        return delivery;
    }

    /** Returns when the server received the request. */
    public long arrivedNanos() {
        return checked.arrivedNanos();
    }

    /** Returns the inputs as the backend sees them. */
    public List<NamedTensor> inputs() {
        return staged == null ? checked.inputs() : staged.inputs();
    }

    /**
     * Returns an input as the backend sees it.
     *
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the request has no such input
     */
    public Tensor input(String name) throws BackendException {
        Tensor found = NamedTensors.find(inputs(), name);
        if (found == null) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "input '" + name + "' of model '" + checked.model() + "': not in the request");
        }
        return found;
    }

    /** Counts the request as using an instance; called before the backend sees the request. */
    public void usedBy(RequestDrain instance) {
        instance.register();
        instanceDrain = instance;
    }

    /**
     * Records the bytes that the request adds to the load. They are subtracted at its end. Called before it is offered.
     */
    public void admitted(long bytes) {
        loadBytes = bytes;
    }

    /** Excludes the request from direct execution. Called before it is offered. */
    public void requireInstanceThread() {
        heavy = true;
    }

    /** Returns whether the request is excluded from direct execution. */
    public boolean isHeavy() {
        return heavy;
    }

    /** Returns whether the backend would work in memory of the client. */
    public boolean usesClientMemory() {
        return checked.inputs().useClientMemory() || checked.outputs().hasTargets();
    }

    /**
     * Moves the inputs to memory that the instance accepts, once. Called after {@link #begin} and before the backend.
     *
     * @param inPlace whether the execution works in memory of the client
     * @return whether the request can be executed; otherwise it is completed and released
     */
    public boolean stageInputs(InputStaging staging, boolean inPlace) {
        if (staged != null || !InputStaging.isNeeded(checked.inputs(), inPlace)) {
            return true;
        }
        try {
            staged = staging.stage(checked.inputs(), inPlace);
            return true;
        } catch (InferenceException e) {
            complete(new ResponseEvent.Failure(e, FailureReason.OTHER));
            release();
            return false;
        }
    }

    public long enqueuedNanos() {
        return enqueuedNanos;
    }

    /** Sets the position in a queue. The queue checks {@link #isWaiting} afterwards, and only then adds the request. */
    public void waitsAt(QueuePosition given) {
        position = given;
    }

    /** Returns whether the request still waits for its execution. */
    public boolean isWaiting() {
        return latch.isWaiting();
    }

    /** Returns whether the completion of the request is decided. */
    public boolean isCompleted() {
        return latch.isCompleted();
    }

    /** Begins the execution, unless the request is completed. */
    public boolean begin() {
        return latch.begin();
    }

    /** Records when the execution begins. */
    public void started(long nanos) {
        startedNanos = nanos;
    }

    /** Completes a waiting request with an error. Removes it from its queue, and releases its inputs. */
    public boolean reject(InferenceException error, FailureReason reason) {
        if (!latch.completeWaiting()) {
            return false;
        }
        QueuePosition left = position;
        if (left != null) {
            left.leave();
        }
        endWaiting(new ResponseEvent.Failure(error, reason), reason);
        return true;
    }

    /**
     * Completes a request that an error of the server kept from the queue. Releases its inputs. Has no effect on a
     * request that is completed, or executed all the same.
     */
    public void failUnqueued(Throwable cause) {
        log("queueing failed", cause);
        reject(SchedulerErrors.internal(cause), FailureReason.OTHER);
    }

    /** Refuses a request that was not queued, unless it is completed, and releases its inputs. */
    public void refuse(InferenceException error) {
        if (latch.completeWaiting()) {
            endWaiting(observer -> observer.onRefused(error), FailureReason.REJECTED);
        }
    }

    /**
     * Completes an unqueued request with an existing response, and releases its inputs. Has no effect on a completed
     * request. The response takes its place in the order of the model, if it preserves one. The caller counts the
     * request.
     *
     * @return whether the event completes the request
     */
    public boolean completeUnqueued(ResponseEvent event) {
        if (!latch.completeWaiting()) {
            return false;
        }
        delivery.takePlace();
        delivery.sendTerminal(event);
        release();
        return true;
    }

    private void endWaiting(ResponseEvent event, FailureReason reason) {
        model.meter().failed(reason, model.nanoTime().getAsLong() - checked.arrivedNanos());
        delivery.send(event);
        release();
    }

    @Override
    public void cancel() {
        cancellation.request();
        if (!reject(SchedulerErrors.cancelled(), FailureReason.CANCELED)) {
            cancellation.notifyBackend(latch);
            delivery.onCancelled();
        }
    }

    /**
     * Completes a request for which the server stops waiting. A waiting request is rejected as new requests are. A
     * request in execution is cancelled at its backend and then completed with
     * {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} at once; its inputs stay as long as the backend uses them. Has no
     * effect on a completed request.
     */
    public void abandon() {
        if (!latch.tryRetain()) {
            return;
        }
        if (!reject(SchedulerErrors.stopped(checked), FailureReason.REJECTED) && latch.isExecuting()) {
            ResponseEvent.Failure failure = ResponseEvent.Failure.abandoned(checked);
            cancellation.request(failure);
            cancel();
            complete(failure);
        }
        release();
    }

    /** Adds the request to the detached requests. The caller holds a reference. */
    public void detach() {
        detached = true;
        model.detached().add(this);
    }

    /** Removes the request from the detached requests. It is waiting or on an instance again. */
    public void attach() {
        if (detached) {
            detached = false;
            model.detached().remove(this);
        }
    }

    /** Returns whether the request is cancelled. */
    public boolean isCancelled() {
        return cancellation.isRequested();
    }

    /** Registers an action that runs when the request is cancelled, as the SPI describes. */
    public CancelHook onCancel(Runnable action) {
        return cancellation.onCancel(action, latch);
    }

    /** Adds a reference to the request and its inputs; the caller holds one. */
    public void retain() {
        latch.retain();
    }

    /**
     * Adds a reference to the inputs; called by any thread.
     *
     * @return {@code false} if the inputs are freed
     */
    public boolean tryRetain() {
        return latch.tryRetain();
    }

    /**
     * Keeps the inputs until the last release if an output lies in them. Called during the execution.
     *
     * @return whether it does
     */
    public boolean keepInputsFor(Tensor output) {
        boolean inside = MemoryRanges.overlap(inputs(), output);
        if (inside) {
            inputsKept = true;
        }
        return inside;
    }

    /**
     * Frees the inputs before the last release, so that an open response does not hold them. Called once, by the
     * execution that completed the request with a response, after the delivery and before its own release. Has no
     * effect if an output lies in the inputs, or if a cancel action may still read them. If the request uses memory of
     * the client, whose registrations last as long as the request, only copies are freed.
     */
    public void freeInputs() {
        if (inputsKept || !latch.isShared() || !cancellation.areActionsDone()) {
            return;
        }
        if (usesClientMemory()) {
            freeStaged();
        } else {
            inputsFreed = true;
            freeInputMemory();
        }
    }

    private void freeInputMemory() {
        freeStaged();
        try {
            checked.releaseInputs();
        } catch (Throwable e) {
            log("release of inputs failed", e);
        }
    }

    private void freeStaged() {
        InputStaging.Staged copies = staged;
        if (copies != null) {
            staged = null;
            copies.close();
        }
    }

    /** Releases a reference; the last release frees the inputs, unless they are freed. */
    public void release() {
        if (!latch.release()) {
            return;
        }
        if (!inputsFreed) {
            freeInputMemory();
        }
        if (detached) {
            model.detached().remove(this);
        }
        if (instanceDrain != null) {
            instanceDrain.deregister();
        }
        if (loadBytes >= 0) {
            model.admission().leave(loadBytes);
        }
        model.drain().deregister();
    }

    /** Completes the request with an error of the backend. */
    public void fail(BackendException error) {
        fail(error, FailureReason.BACKEND);
    }

    /** Completes the request with an error of its execution. */
    public void fail(BackendException error, FailureReason reason) {
        complete(ResponseEvent.Failure.of(error, reason));
    }

    /** Completes an executing request by itself, unless it is completed: settles, counts and delivers. */
    public void complete(ResponseEvent given) {
        ResponseEvent event = settle(given);
        if (event == null) {
            return;
        }
        long now = model.nanoTime().getAsLong();
        ExecutionTally tally = new ExecutionTally(startedNanos, startedNanos, now, now);
        count(event, tally);
        model.meter().record(tally);
        deliver(event);
    }

    /**
     * Decides how an executing request ends; the event of a cancelled request is replaced.
     *
     * @return the event that the caller has to {@link #count} and then to {@link #deliver}; {@code null} if the request
     *     was completed before
     */
    @Nullable
    public ResponseEvent settle(ResponseEvent given) {
        if (!latch.completeExecuting()) {
            given.discard();
            return null;
        }
        if (cancellation.isRequested()) {
            given.discard();
            return cancellation.failure();
        }
        return given;
    }

    /** Adds a settled event to the tally of an execution. */
    public void count(ResponseEvent event, ExecutionTally tally) {
        if (event instanceof ResponseEvent.Failure failure) {
            tally.failed(failure.reason(), checked.arrivedNanos());
        } else {
            tally.succeeded(checked.batchSize(), checked.arrivedNanos(), enqueuedNanos);
        }
    }

    /** Delivers a settled event, after running cancel actions and after responses ordered before it. */
    public void deliver(ResponseEvent event) {
        delivery.deliver(event, cancellation.existing());
    }

    /** Logs an unexpected failure of this request. */
    public void log(String event, Throwable cause) {
        model.fatalErrors().check(cause);
        RequestLog.error(checked, event, cause);
    }
}
