package dev.nereid.scheduler.request;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.Quoted;
import dev.nereid.scheduler.memory.InputLease;
import dev.nereid.scheduler.memory.InputStaging;
import dev.nereid.scheduler.memory.MemoryRanges;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Tensor;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * Holds the resources of a request: memory, share of the load, and instance. The last of its references releases all of
 * them.
 *
 * <p>A superclass and no component of {@link ScheduledRequest}, since every request would need one more object.
 */
abstract sealed class RequestUse implements Executable, DetachedRequests.Detached permits ScheduledRequest {
    private static final int OPEN = 0;
    private static final int LEASED = 1;
    private static final int FREED = 2;

    private static final VarHandle INPUT_STATE;

    static {
        try {
            INPUT_STATE = MethodHandles.lookup().findVarHandle(RequestUse.class, "inputState", int.class);
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

    /**
     * The state of the inputs: open, freed before the last release, or leased. Set once, by the holder of a reference.
     */
    private volatile int inputState = OPEN;

    RequestUse(ModelScope model, CheckedRequest checked, long enqueuedNanos) {
        this.model = model;
        this.checked = checked;
        this.enqueuedNanos = enqueuedNanos;
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

    /** Allocates memory for {@link #endExecution}, which must not fail. */
    void prepareEnd() {
        extra().prepareEnd();
    }

    /**
     * Ends an execution after which the request is rescheduled. Its instance and copied inputs are kept until
     * {@link #endUnused}.
     *
     * @param nowNanos when the new wait begins
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
        } catch (Throwable e) {
            log("release of inputs failed", e);
        }
    }

    /** Moves inputs to memory that the instance accepts. */
    void stage(InputStaging staging, boolean inPlace) {
        extra().stage(staging, inPlace);
    }

    /**
     * Keeps the inputs until the last release if an output lies in them. Called during the execution.
     *
     * @return whether an output keeps them
     */
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
        try {
            if (!INPUT_STATE.compareAndSet(this, OPEN, LEASED) && inputState == FREED) {
                throw inputsFreed();
            }
            ExecutionMemory used = extra;
            return new InputLease(this::release, used == null ? List.of() : used.retainAdded());
        } catch (RuntimeException | Error e) {
            release();
            throw e;
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

    /**
     * Retains the memory of an added input, such as a state, for an output that lies in it. Called by any thread.
     *
     * @return {@code null} if it lies in none
     */
    public @Nullable ReferenceCountedMemory retainAdded(Tensor output) {
        ExecutionMemory used = extra;
        return used == null ? null : used.retainAdded(output);
    }

    /**
     * Frees all inputs, unless an output lies in them. If the inputs lie in memory of a client, frees copies and added
     * inputs alone.
     */
    void freeUnusedInputs() {
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
        } catch (Throwable e) {
            log("release of inputs failed", e);
        }
    }

    /** Adds a reference to the request and its inputs; the caller holds one. */
    public void retain() {
        latch.retain();
    }

    /**
     * Adds a reference to the request and its inputs; called by any thread.
     *
     * @return {@code false} if none was left
     */
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
        } catch (Throwable e) {
            log("release of inputs failed", e);
        }
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

    /** Logs an unexpected failure of this request. */
    public void log(String event, Throwable cause) {
        model.fatalErrors().check(cause);
        RequestLog.error(checked, event, cause);
    }
}
