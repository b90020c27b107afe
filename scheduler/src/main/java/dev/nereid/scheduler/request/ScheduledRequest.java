package dev.nereid.scheduler.request;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.Quoted;
import dev.nereid.api.ResponseObserver;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.memory.InputLease;
import dev.nereid.scheduler.memory.InputStaging;
import dev.nereid.scheduler.memory.MemoryRanges;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.statistics.ExecutionTally;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.Tensor;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A request from its arrival to the release of its memory. Lock-free; safe for use by any thread. Its backend sees an
 * {@code BackendRequest}; its {@link ResponseDelivery} calls its observer.
 *
 * <p><b>One completion.</b> Response, error, cancellation, timeout and shutdown race for the last step of a
 * {@link CompletionLatch}. The thread that takes the step counts the request and then calls the observer. A waiting
 * request that is cancelled leaves its queue and completes at once; it can no longer begin, so it never reaches a
 * backend. A request that is cancelled during its execution completes when its execution ends, and always as cancelled:
 * also if the backend responds with outputs, or with an error caused by the interruption. If the server stops waiting
 * for a request, the thread that abandons it completes it at once, and holds a reference to it meanwhile.
 *
 * <p><b>Executions.</b> A request may be executed several times: {@link #reschedule} reschedules it. A response or
 * failure of an execution names the execution, and completes the request during that one alone. The request's stream,
 * its client and the server complete it whether it waits or is executed. A cancellation that races with the step back
 * to waiting is not lost: the canceller sets a flag and then reads the latch, the thread that queues the request takes
 * the step, queues it, and then reads the flag ({@link #checkQueued}).
 *
 * <p><b>Memory.</b> References keep the inputs alive: the queue or execution, each response, the sender, and each lease
 * on the inputs hold one. The last release frees the inputs and ends the count of the request as in flight. Outputs may
 * therefore lie in inputs, and while no request is in flight no thread reads memory of the model. The last user of the
 * inputs, execution or sender, frees them earlier, if no output lies in them ({@link #freeInputs}).
 */
public final class ScheduledRequest implements Executable, DetachedRequests.Detached, Cancellation {
    private static final int OPEN = 0;
    private static final int LEASED = 1;
    private static final int FREED = 2;

    private static final VarHandle INPUT_STATE;

    static {
        try {
            INPUT_STATE = MethodHandles.lookup().findVarHandle(ScheduledRequest.class, "inputState", int.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    final ModelScope model;
    final CheckedRequest checked;
    final CompletionLatch latch = new CompletionLatch();

    /** {@code true} if the request is among the detached requests. It is removed from them at its end. */
    private volatile boolean detached;

    /** The time at which the current wait began; written before the queue sees the request. */
    private long enqueuedNanos;

    /** The time at which the execution began; written before the backend sees the request. */
    private long startedNanos;

    /** Counts the requests that use the instance; written before the backend sees the request. */
    private @Nullable RequestDrain instanceDrain;

    /** The device of the latest instance, also while the request waits for its next execution. */
    private Device device = Device.CPU;

    /** {@code true} if the request is part of another one, as the load counts it. */
    private boolean part;

    /** The request's bytes in the load; below 0 if it is not counted as load. Set before the request is queued. */
    private long loadBytes = -1;

    /**
     * The resources of executions beyond the inputs; {@code null} for none. Set before the backend sees the request in
     * an execution; threads of an earlier execution may see it before.
     */
    private volatile @Nullable ExecutionMemory extra;

    /** {@code true} if an output lies in the inputs. Written during the execution, before its end. */
    private boolean inputsKept;

    /** The state of the inputs: open, freed before the last release, or leased. Set once, with a reference held. */
    private volatile int inputState = OPEN;

    private final ResponseDelivery delivery;
    private final CancellationState cancellation = new CancellationState();

    /** The position in a sequence; {@code null} for the client's position. */
    private @Nullable Sequence sequence;

    /** {@code true} if the request has ended, before it was cancelled. */
    private volatile boolean settledUncancelled;

    /** {@code true} if only instance threads may execute the request. It needs more work than its execution then. */
    private boolean needsInstanceThread;

    /** {@code true} if other readers use the inputs, and the last of them frees the inputs. */
    private volatile boolean inputsLent;

    /**
     * The last position in a queue. A queue writes it and then checks that the request still waits; a thread that
     * completes a waiting request takes the step of the latch and then reads it. Both are volatile, so that at least
     * one sees the other.
     */
    private volatile Rescheduler.@Nullable Position position;

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
        this.enqueuedNanos = enqueuedNanos;
        this.delivery = new ResponseDelivery(this, observer, order);
        model.drain().register();
    }

    public ResponseDelivery delivery() {
        return delivery;
    }

    @Override
    public ScheduledRequest request() {
        return this;
    }

    /** Returns the number of the current or last execution, from 1; 0 before the first. */
    public int execution() {
        return latch.execution();
    }

    /** Returns the position in a sequence for one execution; the sequence starts in the first one only. */
    public Optional<Sequence> sequence(int execution) {
        Sequence own = sequence;
        Optional<Sequence> position = own == null ? checked.options().sequence() : Optional.of(own);
        return execution <= 1 ? position : position.map(one -> new Sequence(one.id(), false, one.end()));
    }

    /** Sets a position in a sequence in place of the client's. Called before it is offered. */
    public void setSequence(Sequence sequence) {
        this.sequence = sequence;
    }

    /** Excludes the request from direct execution. Called before it is offered. */
    public void requireInstanceThread() {
        needsInstanceThread = true;
    }

    /** Returns whether the request is excluded from direct execution. */
    public boolean needsInstanceThread() {
        return needsInstanceThread;
    }

    /**
     * Moves the inputs to memory that the instance accepts, once. Called after {@link #begin} and before the backend.
     *
     * @param inPlace whether the execution works in memory of the client
     * @return whether the request can be executed; otherwise it is completed and released
     */
    public boolean stageInputs(InputStaging staging, boolean inPlace) {
        if (!checked.inputs().needStaging(inPlace)) {
            return true;
        }
        try {
            stage(staging, inPlace);
            return true;
        } catch (InferenceException e) {
            complete(new ResponseEvent.Failure(e, FailureReason.OTHER));
            endExecutions(true);
            return false;
        }
    }

    /** Returns the last position in a queue; {@code null} if the request was never offered. */
    public Rescheduler.@Nullable Position position() {
        return position;
    }

    /** Sets the position in a queue. The queue checks {@link #isWaiting} afterwards, and only then adds the request. */
    public void setPosition(Rescheduler.Position position) {
        this.position = position;
    }

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

    /** Closes the cancel actions before {@link #reschedule}; {@code false} if cancelled, to be completed instead. */
    public boolean closeActions() {
        return !isCancelled() && cancellation.closeActions();
    }

    /**
     * Reschedules an executing request: puts it back to waiting. Called by the thread that ends the execution, last of
     * all, after {@link #setPosition}; the thread then offers the request to the queue, and calls {@link #checkQueued}. The
     * execution's reference becomes the queue's.
     *
     * @param execution the number of the execution that ends
     * @param nowNanos when the new wait begins
     * @return {@code false} if the request was completed meanwhile; the caller still holds the execution's reference
     */
    public boolean reschedule(int execution, long nowNanos) {
        attach();
        endExecution(nowNanos);
        retain(); // from the step on, any thread may complete the request and release the queue's reference
        boolean waits = latch.reschedule(execution);
        if (waits) {
            cancellation.openActions();
            endUnused(delivery);
        }
        release();
        return waits;
    }

    /** Completes a rescheduled request that was cancelled or abandoned while it was queued. Called afterwards. */
    public void checkQueued() {
        if (model.detached().areAbandoned()) {
            abandon();
        } else if (isCancelled()) {
            ResponseEvent.Failure failure = cancellation.failure();
            reject(failure.error(), failure.reason());
        }
    }

    /** Completes a waiting request with an error. Removes it from its queue, and releases its inputs. */
    public boolean reject(InferenceException error, FailureReason reason) {
        if (!latch.completeWaiting()) {
            return false;
        }
        try {
            leaveQueue();
        } finally { // no other thread would complete the request
            endWaiting(new ResponseEvent.Failure(error, reason), error, reason);
        }
        return true;
    }

    /** Completes a waiting request like {@link #reject}. Exceptions are logged. */
    public void rejectQuietly(InferenceException error, FailureReason reason) {
        try {
            reject(error, reason);
        } catch (RuntimeException e) {
            log("completion of request failed", e);
        }
    }

    private void leaveQueue() {
        Rescheduler.Position left = position;
        if (left != null) {
            left.leave();
        }
    }

    /**
     * Completes a request that was not queued because of an error of the server, and logs the error. Releases its
     * inputs. Has no effect on a request that is completed, or executed all the same.
     */
    public void failUnqueued(Throwable cause) {
        try {
            rejectQuietly(SchedulerErrors.internal(cause), FailureReason.OTHER);
        } finally {
            log("queueing failed", cause);
        }
    }

    /** Refuses a request that was not queued, unless it is completed, and releases its inputs. */
    public void refuse(InferenceException error) {
        if (latch.completeWaiting()) {
            endWaiting(observer -> observer.onRefused(error), error, FailureReason.REJECTED);
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

    private void endWaiting(ResponseEvent event, InferenceException error, FailureReason reason) {
        try {
            if (reason == FailureReason.REJECTED && error.code() == ErrorCode.INVALID_ARGUMENT) {
                delivery.countRefusal(error); // no failure of the model: rejected means overload
            } else {
                model.meter().failed(reason, model.nanoTime().getAsLong() - checked.arrivedNanos());
            }
        } finally { // no other thread would complete the request
            delivery.sendTerminal(event);
            endExecutions(true);
        }
    }

    /**
     * Releases the reference of the queue or the execution: no execution follows. The inputs of a request with a sender are
     * freed here or with the end of the sender, so that an open response does not hold them.
     *
     * @param endsStream whether to end the sender; if not, the backend does
     */
    public void endExecutions(boolean endsStream) {
        delivery.executed(endsStream);
        release();
    }

    @Override
    public void cancel() {
        cancellation.request();
        if (!reject(SchedulerErrors.cancelled(), FailureReason.CANCELED)) {
            cancellation.notifyBackend(latch);
            if (latch.isWaiting()) { // again
                reject(SchedulerErrors.cancelled(), FailureReason.CANCELED);
            }
            delivery.onCancelled();
        }
    }

    /**
     * Completes a request for which the server stops waiting. A waiting request is rejected as new requests are. A
     * request in execution is cancelled at its backend and then completed with
     * {@link dev.nereid.spi.ErrorCode#UNAVAILABLE} at once; its inputs stay as long as the backend uses them. Has no
     * effect on a completed request.
     */
    @Override
    public void abandon() {
        if (!latch.tryRetain()) {
            return;
        }
        if (!reject(SchedulerErrors.stopped(checked), FailureReason.REJECTED) && !latch.isCompleted()) {
            ResponseEvent.Failure failure = ResponseEvent.Failure.abandoned(checked);
            cancellation.request(failure);
            cancellation.notifyBackend(latch);
            complete(failure); // also if it is rescheduled
        }
        release();
    }

    @Override
    public boolean hasSender() {
        return delivery.isStreamOpen();
    }

    @Override
    public boolean isForsaken() {
        return hasSender() && (isCompleted() || isCancelled());
    }

    public boolean isCancelled() {
        return cancellation.isRequested();
    }

    /**
     * Makes the request execute to its end even if its client cancels it, and hides the cancellation from the backend:
     * a step of a sequence counts once it has begun. Called before it is offered.
     */
    public void completeSteps() {
        cancellation.shield();
    }

    /** Returns whether the request is cancelled as far as its backend is concerned. */
    public boolean isCancelledForBackend() {
        return cancellation.isNotified();
    }

    /** Registers an action that runs when the request is cancelled in an execution, as the SPI describes. */
    public CancelHook onCancel(Runnable action, int execution) {
        return cancellation.onCancel(action, latch, execution);
    }

    /**
     * Frees the inputs before the last release, so that an open response does not hold them. Called once, by the last
     * user of the inputs, before its own release: by the execution that completed the request with a response, after
     * the delivery; for a request with a sender, by the later one of executions and sender; after a hit of the cache.
     * Has no effect if an output lies in the inputs, they are leased, or a cancel action may still read them. If the
     * request uses memory of the client, only copies are freed: registrations of that memory last as long as the
     * request.
     */
    public void freeInputs() {
        if (!inputsLent && latch.isShared() && cancellation.areActionsDone()) {
            freeUnusedInputs();
        }
    }

    /**
     * Leaves it to other readers to free the inputs, by {@link #freeUnusedInputs}: they may read them after the
     * executions. Each reader holds a reference. Called during the execution.
     */
    public void lendInputs() {
        inputsLent = true;
    }

    /** Completes the request with an error of the backend, whether it is executed or rescheduled. */
    public void fail(BackendException error) {
        fail(error, FailureReason.BACKEND);
    }

    /** Completes the request with an error, whether it is executed or rescheduled. */
    public void fail(BackendException error, FailureReason reason) {
        complete(ResponseEvent.Failure.of(error, reason));
    }

    /**
     * Completes a request outside of a batch, unless it is completed: settles, counts and delivers. A rescheduled
     * request leaves its queue.
     */
    public void complete(ResponseEvent completion) {
        while (!latch.isCompleted()) {
            if (latch.completeExecuting()) {
                completeNow(completion, startedNanos());
                return;
            }
            if (latch.completeWaiting()) {
                leaveQueue();
                completeNow(completion, model.nanoTime().getAsLong());
                endExecutions(true);
                return;
            }
        }
        completion.discard();
    }

    /**
     * Completes the request like {@link #complete(ResponseEvent)}, but only during one execution. The caller need not
     * hold a reference.
     */
    public void complete(ResponseEvent completion, int execution) {
        if (!latch.tryRetain()) {
            completion.discard();
            return;
        }
        if (latch.completeExecuting(execution)) {
            completeNow(completion, startedNanos());
        } else {
            completion.discard();
        }
        release();
    }

    private void completeNow(ResponseEvent completion, long startNanos) {
        ResponseEvent event = settled(completion);
        long now = model.nanoTime().getAsLong();
        ExecutionTally tally = delivery.tally(startNanos, now);
        tally.ranOn(device());
        count(event, tally);
        model.meter().record(tally);
        delivery.deliver(event);
    }

    /**
     * Decides how a request ends with one of its executions; the event of a cancelled request is replaced.
     *
     * @return the event that the caller has to {@link #count} and then to {@link ResponseDelivery#deliver}; {@code null} if the request
     *     was completed before
     */
    @Nullable
    public ResponseEvent settle(ResponseEvent completion, int execution) {
        if (!latch.completeExecuting(execution)) {
            completion.discard();
            return null;
        }
        return settled(completion);
    }

    private ResponseEvent settled(ResponseEvent completion) {
        if (cancellation.isRequested()) {
            completion.discard();
            return cancellation.failure();
        }
        settledUncancelled = true;
        return completion;
    }

    /** Returns whether the request is cancelled, and did not end before with another outcome. */
    public boolean endsCancelled() {
        return isCancelled() && !settledUncancelled;
    }

    /** Adds a settled event to the tally of an execution. */
    public void count(ResponseEvent event, ExecutionTally tally) {
        if (event instanceof ResponseEvent.Failure failure) {
            tally.failed(failure.reason(), checked.arrivedNanos());
        } else {
            delivery.count(tally);
        }
    }

    /** Returns the cancel actions of the backend; {@code null} if there are none. */
    @Nullable
    CancelActions cancelActions() {
        return cancellation.existing();
    }

    public ModelScope model() {
        return model;
    }

    public CheckedRequest checked() {
        return checked;
    }

    /** Returns when the server received the request. */
    public long arrivedNanos() {
        return checked.arrivedNanos();
    }

    /** Returns the inputs as the backend sees them: the client's inputs, and behind them the execution's inputs. */
    public List<NamedTensor> inputs() {
        ExecutionMemory used = extra;
        return used == null ? checked.inputs() : used.inputs();
    }

    /** Adds the inputs of the current execution, and holds their memory. Called after copies and before the backend. */
    public void add(Executable inputs) {
        if (!inputs.added().isEmpty()) {
            extra().add(inputs);
        }
    }

    private ExecutionMemory extra() {
        ExecutionMemory used = extra;
        if (used == null) {
            used = new ExecutionMemory(checked.inputs());
            extra = used;
        }
        return used;
    }

    /**
     * Returns an input as the backend sees it.
     *
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the request has no such input
     */
    public Tensor input(String name) {
        Tensor found = NamedTensors.find(inputs(), name);
        if (found == null) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "input '" + name + "' of model '" + checked.model() + "': not in the request");
        }
        return found;
    }

    /**
     * Marks the request as using an instance, where the caller has counted it. Called before the backend sees it.
     *
     * @return {@code false} if it was counted and marked before, and a failure kept it from its backend
     */
    public boolean usedBy(RequestDrain requests) {
        boolean added = instanceDrain == null;
        if (added) {
            instanceDrain = requests;
            device = requests.device();
        }
        return added;
    }

    /**
     * Records the bytes that the request adds to the load. They are subtracted at its end. Called before it is offered.
     *
     * @param isPart whether the limits of the server do not count it
     */
    public void admitted(long bytes, boolean isPart) {
        part = isPart;
        loadBytes = bytes;
    }

    /** Returns whether the backend would work in memory of the client. */
    public boolean usesClientMemory() {
        return checked.inputs().useClientMemory() || checked.outputs().hasTargets();
    }

    /** Records when the request is queued. Called before the queue sees it. */
    public void queuedAt(long nanos) {
        enqueuedNanos = nanos;
    }

    /** Returns when the current wait began. */
    public long enqueuedNanos() {
        return enqueuedNanos;
    }

    /** Records when the execution begins. */
    public void started(long nanos) {
        startedNanos = nanos;
    }

    @Override
    public boolean isExecuting() {
        return latch.execution() > 0 && !latch.isWaiting() && !latch.isCompleted();
    }

    @Override
    public String id() {
        return checked.id();
    }

    @Override
    public long startedNanos() {
        return startedNanos;
    }

    /** Returns when the request would have been queued if it had waited once, for the sum of its waits. */
    long queuedNanos() {
        ExecutionMemory used = extra;
        return used == null ? enqueuedNanos : enqueuedNanos - used.waitedNanos();
    }

    /**
     * Ends an execution after which the request is rescheduled, and waits from {@code nowNanos} on. Its instance and
     * copied inputs are kept until {@link #endUnused}.
     */
    void endExecution(long nowNanos) {
        extra().endExecution(instanceDrain, startedNanos - enqueuedNanos);
        instanceDrain = null;
        enqueuedNanos = nowNanos;
    }

    /**
     * Ends the use of the instances of earlier executions and of copied inputs, unless a response may lie there. Called
     * before a rescheduled request is queued, with a reference beside the queue's.
     *
     * <p>A sender may complete the request meanwhile. So the references are read first: if the sender is open and the
     * request waits afterwards, their references were among them, and the other references belong to responses.
     *
     * @param delivery the delivery with the stream, if there is one: the stream holds a reference until it is ended,
     *     and copies until the end
     */
    void endUnused(ResponseDelivery delivery) {
        int references = latch.references();
        int ofOthers = references - (delivery.isStreamOpen() ? 3 : 2);
        if (ofOthers > 0 || latch.isCompleted()) {
            return;
        }
        try {
            extra().endUnused(delivery.isStreaming());
        } catch (RuntimeException e) {
            log("release of inputs failed", e);
        }
    }

    /** Moves inputs to memory that the instance accepts. */
    void stage(InputStaging staging, boolean inPlace) {
        extra().stage(staging, inPlace);
    }

    /** Keeps inputs until the last release if an output lies in them; returns whether. Called during the execution. */
    public boolean keepInputsFor(Tensor output) {
        boolean inside = MemoryRanges.overlap(inputs(), output);
        if (inside) {
            inputsKept = true;
        }
        return inside;
    }

    /**
     * Keeps the inputs for a tensor that lies in them. Called during the execution.
     *
     * @return the action that ends this; empty if the tensor lies elsewhere, or the request is released
     */
    public Optional<Runnable> keep(Tensor input) {
        if (!tryRetain()) {
            return Optional.empty();
        }
        if (!keepInputsFor(input)) {
            release();
            return Optional.empty();
        }
        return Optional.of(this::release);
    }

    /**
     * Holds the inputs as the backend sees them now, for a reader that outlives execution and responses. Called by any
     * thread before the execution and the sender have ended.
     *
     * @return the lease; any thread may end it, once or more
     * @throws IllegalStateException if the inputs are freed
     */
    public InputLease leaseInputs() {
        if (!tryRetain()) {
            throw inputsFreed();
        }
        boolean leased = false;
        try {
            if (!INPUT_STATE.compareAndSet(this, OPEN, LEASED) && inputState == FREED) {
                throw inputsFreed();
            }
            ExecutionMemory used = extra;
            InputLease lease = new InputLease(this::release, used == null ? List.of() : used.retainAdded());
            leased = true;
            return lease;
        } finally {
            if (!leased) {
                release();
            }
        }
    }

    private IllegalStateException inputsFreed() {
        return new IllegalStateException("leaseInputs: the inputs of request '" + Quoted.text(checked.id())
                + "' are freed (expected: before the end of its execution and sender)");
    }

    /** Keeps the inputs until the last release. The caller retains the request. */
    void keepInputs() {
        inputsKept = true;
    }

    /** Retains an added input, such as a state, for an output in it; {@code null} for none. Called by any thread. */
    public @Nullable ReferenceCountedMemory retainAdded(Tensor output) {
        ExecutionMemory used = extra;
        return used == null ? null : used.retainAdded(output);
    }

    /**
     * Frees all inputs, unless an output lies in them; also before the request completes, when no reader needs them any
     * more. If the inputs lie in memory of a client, frees copies and added inputs alone. Called by the holder of a
     * reference.
     */
    public void freeUnusedInputs() {
        if (inputsKept || !INPUT_STATE.compareAndSet(this, OPEN, FREED)) {
            return;
        }
        try {
            ExecutionMemory used = extra;
            if (used != null) {
                used.endCurrent();
            }
            if (!usesClientMemory()) {
                checked.releaseInputs();
            }
        } catch (RuntimeException e) {
            log("release of inputs failed", e);
        }
    }

    /** Adds a reference to the request and its inputs; the caller holds one. */
    public void retain() {
        latch.retain();
    }

    /** Adds a reference to the request and its inputs; {@code false} if none was left. Called by any thread. */
    public boolean tryRetain() {
        return latch.tryRetain();
    }

    /** Releases a reference; the last release frees the inputs, unless they are freed. */
    public void release() {
        if (!latch.release()) {
            return;
        }
        try {
            ExecutionMemory used = extra;
            if (used != null) {
                used.close();
            }
            if (inputState != FREED || usesClientMemory()) {
                checked.releaseInputs();
            }
        } catch (RuntimeException e) {
            log("release of inputs failed", e);
        } finally {
            endCounts();
        }
    }

    private void endCounts() {
        if (detached) {
            model.detached().remove(this);
        }
        if (instanceDrain != null) {
            instanceDrain.deregister();
        }
        if (loadBytes >= 0) {
            model.admission().leave(loadBytes, part);
        }
        if (!latch.isLost()) {
            model.drain().deregister();
        }
    }

    /** Ends the count of the request in flight before its memory is released, since its execution may never end. */
    @Override
    public void lose() {
        if (latch.tryRetain()) {
            latch.lose();
            model.drain().deregister();
            release();
        }
    }

    @Override
    public String instance() {
        RequestDrain used = instanceDrain;
        return used == null ? "" : used.name();
    }

    /** Returns the device of the latest instance that the request used; the CPU for none. */
    public Device device() {
        return device;
    }

    @Override
    public boolean uses(RequestDrain requests) {
        return instanceDrain == requests;
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

    public void log(String event, Throwable cause) {
        model.fatalErrors().check(cause);
        checked.log(event, cause);
    }
}
