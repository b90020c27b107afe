package dev.nereid.scheduler.request;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.admission.InFlightRequests;
import dev.nereid.scheduler.statistics.ExecutionTally;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * One request from its arrival to the release of its memory. Lock-free; safe for use by any thread. What its backend
 * sees of it is an {@code ExecutedRequest}; what its observer hears goes through its {@link ResponseDelivery}.
 *
 * <p><b>One answer.</b> Response, error, withdrawal, time-out and shutdown race for the last step of a
 * {@link CompletionLatch}, and whoever takes it counts the request and then tells the observer. A waiting request that
 * is withdrawn is taken out of its queue and answered at once, and can no longer begin, so it never reaches a backend.
 * One that is withdrawn while it is executed is answered when its backend is done with it, and always as withdrawn:
 * also when the backend gives outputs, or an error of its own that tells of the interruption. One whose server cannot
 * wait any more is answered at once in any case, by whoever gives it up, who is a user meanwhile.
 *
 * <p><b>Memory.</b> The inputs have users: the queue or execution, each response, and the stream of a decoupled model.
 * The last one to go gives them back and takes the call out of the count of calls in flight. Outputs may therefore lie
 * in inputs, and when no call is in flight nobody reads memory of the model any more.
 */
public final class ScheduledRequest implements Cancellation {
    private final ModelScope model;
    private final CheckedRequest checked;
    private final boolean clientMemory;
    private final long arrivedNanos;
    private final long enqueuedNanos;
    private final ResponseDelivery delivery;
    private final CompletionLatch latch = new CompletionLatch();
    private final CancellationState cancellation = new CancellationState();

    /** Whether it has to be taken from the stragglers at its end. */
    private volatile boolean detached;

    /** When the execution began; written before the backend sees the request. */
    private long startedNanos;

    /** Whether only the threads of instances may execute it, since more than its execution is to be done. */
    private boolean heavy;

    /**
     * The last position in a queue. A queue writes it and then checks that the request still waits; a thread that
     * completes a waiting request takes the step of the latch and then reads it. Both are volatile, so that at least
     * one sees the other.
     */
    private volatile @Nullable QueuePosition position;

    /** Counts the calls that its instance is not done with; written before the backend sees the request. */
    private @Nullable InFlightRequests instanceRequests;

    /** How many bytes of the load it has; below 0 if it was not counted as load. Set before the request is queued. */
    private long loadBytes = -1;

    /** The inputs as the backend sees them, if they are not those of the call; set before it sees them. */
    private @Nullable CopiedInputs copied;

    /**
     * Counts the call as in flight, and takes over its memory. Whoever makes it offers it to the queue.
     *
     * @param order keeps the answers of the model in order; {@code null} if any order will do
     * @param arrivedNanos when the server was given the call
     * @param enqueuedNanos when it is queued
     */
    public ScheduledRequest(
            ModelScope model,
            @Nullable ResponseOrder order,
            CheckedRequest call,
            ResponseObserver observer,
            long arrivedNanos,
            long enqueuedNanos) {
        this.model = model;
        this.checked = call;
        this.delivery = new ResponseDelivery(this, observer, order);
        this.clientMemory = ClientMemory.isUsedBy(call.inputs());
        this.arrivedNanos = arrivedNanos;
        this.enqueuedNanos = enqueuedNanos;
        model.inFlight().enter();
    }

    public ModelScope model() {
        return model;
    }

    public CheckedRequest checked() {
        return checked;
    }

    /** Returns what its observer is told. */
    public ResponseDelivery delivery() {
        return delivery;
    }

    /** Returns when the server was given the call. */
    public long arrivedNanos() {
        return arrivedNanos;
    }

    /** Returns the inputs as the backend sees them. */
    public List<NamedTensor> inputs() {
        return copied == null ? checked.inputs() : copied.inputs();
    }

    /** Returns an input as the backend sees it, which has to be there. */
    public Tensor input(String name) throws BackendException {
        Tensor found = NamedTensors.find(inputs(), name);
        if (found == null) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "input '" + name + "' of model '" + checked.model() + "': not in the request");
        }
        return found;
    }

    /** Takes note of the instance that executes the request; to be called before the backend sees it. */
    public void usedBy(InFlightRequests calls) {
        calls.enter();
        instanceRequests = calls;
    }

    /**
     * Takes note that the request was counted as load, to be taken off at its end. To be called before it is offered.
     */
    public void admitted(long bytes) {
        loadBytes = bytes;
    }

    /** Leaves the request to the threads of instances. To be called before it is offered. */
    public void requireInstanceThread() {
        heavy = true;
    }

    /** Says whether the request is left to the threads of instances. */
    public boolean isHeavy() {
        return heavy;
    }

    /** Says whether the backend would work in memory of the client. */
    public boolean usesClientMemory() {
        return clientMemory || !checked.targets().isEmpty();
    }

    /**
     * Copies the inputs that lie in memory of the client. To be called between the begin of the execution and the
     * backend.
     *
     * @return whether the request can be executed; otherwise it was answered, and is not to be touched any more
     */
    public boolean copyClientMemory() {
        if (!clientMemory) {
            return true;
        }
        try {
            copied = new CopiedInputs(checked.inputs(), model.memory());
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

    /** Says whether the request still waits for its execution. */
    public boolean isWaiting() {
        return latch.isWaiting();
    }

    /** Says whether it is settled how the request ends. */
    public boolean isCompleted() {
        return latch.isCompleted();
    }

    /** Begins the execution, unless the request was answered. */
    public boolean begin() {
        return latch.begin();
    }

    /** Takes note of when the execution begins. */
    public void started(long nanos) {
        startedNanos = nanos;
    }

    /** Answers a request that waits, if nobody did, takes it out of the queue, and gives its inputs back. */
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
     * Answers a request that could not be queued for an error of the server, unless it was answered or is executed all
     * the same; and gives its inputs back.
     */
    public void failUnqueued(Throwable cause) {
        log("queueing failed", cause);
        reject(SchedulerErrors.internal(cause), FailureReason.OTHER);
    }

    /** Answers a request that was not queued, unless it was answered, and gives its inputs back. */
    public void refuse(InferenceException error) {
        if (latch.completeWaiting()) {
            endWaiting(told -> told.onRefused(error), FailureReason.REJECTED);
        }
    }

    /**
     * Answers a request that was not queued with a response that was made before, unless it was answered, in its turn
     * if the model keeps order; and gives its inputs back. The caller has it counted.
     *
     * @return whether the answer was taken
     */
    public boolean completeUnqueued(ResponseEvent answer) {
        if (!latch.completeWaiting()) {
            return false;
        }
        delivery.takePlace();
        delivery.sendTerminal(answer);
        release();
        return true;
    }

    private void endWaiting(ResponseEvent answer, FailureReason reason) {
        model.meter().failed(reason, model.nanoTime().getAsLong() - arrivedNanos);
        delivery.send(answer);
        release();
    }

    @Override
    public void cancel() {
        cancellation.request();
        if (!reject(SchedulerErrors.cancelled(), FailureReason.CANCELED)) {
            cancellation.notifyBackend(latch);
        }
    }

    /**
     * Ends a request whose server cannot wait for it any more: one that waits is refused as all that come now, one that
     * is executed is withdrawn from its backend and then told {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} at once. The
     * inputs stay as long as the backend uses them. One that was answered is left alone.
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

    /** Has the request remembered as one that neither waits nor is with an instance. To be called by a user. */
    public void detach() {
        detached = true;
        model.detached().add(this);
    }

    /** Takes note that the request goes where it is found without being remembered. */
    public void attach() {
        if (detached) {
            detached = false;
            model.detached().remove(this);
        }
    }

    /** Says whether the client withdrew the call. */
    public boolean isCancelled() {
        return cancellation.isRequested();
    }

    /** Has an action run when the client withdraws the call, as the SPI says. */
    public CancelHook onCancel(Runnable action) {
        return cancellation.onCancel(action, latch);
    }

    /** Adds a user of the inputs; to be called by a user only. */
    public void retain() {
        latch.retain();
    }

    /** Takes a user of the inputs away; the last one gives them back. */
    public void release() {
        if (!latch.release()) {
            return;
        }
        try {
            if (copied != null) {
                copied.close();
            }
            checked.release().run();
        } catch (Throwable e) {
            log("release of inputs failed", e);
        }
        if (detached) {
            model.detached().remove(this);
        }
        if (instanceRequests != null) {
            instanceRequests.leave();
        }
        if (loadBytes >= 0) {
            model.load().leave(loadBytes);
        }
        model.inFlight().leave();
    }

    /** Answers with an error of the backend. */
    public void fail(BackendException error) {
        fail(error, FailureReason.BACKEND);
    }

    /** Answers with an error of its execution. */
    public void fail(BackendException error, FailureReason reason) {
        complete(ResponseEvent.Failure.of(error, reason));
    }

    /** Answers an executing request by itself, unless it was answered: settles it, counts it, tells it. */
    public void complete(ResponseEvent given) {
        ResponseEvent answer = settle(given);
        if (answer == null) {
            return;
        }
        long now = model.nanoTime().getAsLong();
        ExecutionTally tally = new ExecutionTally(startedNanos, startedNanos, now, now);
        count(answer, tally);
        model.meter().record(tally);
        deliver(answer);
    }

    /**
     * Settles how an executing request ends; the answer of one that was withdrawn is replaced.
     *
     * @return what the caller has to {@link #count} and then to {@link #deliver}; {@code null} if the request was
     *     answered before
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

    /** Adds what was settled to the figures of an execution. */
    public void count(ResponseEvent answer, ExecutionTally tally) {
        if (answer instanceof ResponseEvent.Failure failure) {
            tally.failed(failure.reason(), arrivedNanos);
        } else {
            tally.succeeded(checked.batchSize(), arrivedNanos, enqueuedNanos);
        }
    }

    /** Tells what was settled, after what goes before it. */
    public void deliver(ResponseEvent answer) {
        delivery.deliver(answer, cancellation.existing());
    }

    /** Logs what must not have happened to this request. */
    public void log(String event, Throwable cause) {
        model.fatalErrors().check(cause);
        RequestLog.error(checked, event, cause);
    }
}
