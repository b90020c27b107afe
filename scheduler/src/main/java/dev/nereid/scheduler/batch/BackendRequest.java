package dev.nereid.scheduler.batch;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.Quoted;
import dev.nereid.api.call.CallChain;
import dev.nereid.api.call.Hold;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.client.CausingRequest;
import dev.nereid.scheduler.handle.Reachability;
import dev.nereid.scheduler.handle.SenderHandle;
import dev.nereid.scheduler.memory.DeviceCopies;
import dev.nereid.scheduler.memory.MemoryRanges;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.memory.StackReserve;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.FinishedResponse;
import dev.nereid.scheduler.request.NamedTensors;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ResponseChannel;
import dev.nereid.scheduler.request.ResponseDelivery;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.request.StateSink;
import dev.nereid.scheduler.statistics.ExecutionTally;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ResponseSender;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * A request as its backend sees it during one execution. Confined to the execution, except for methods that the SPI
 * allows for any thread; these delegate to the {@link ScheduledRequest}.
 */
final class BackendRequest extends CheckedRequestView
        implements InferenceRequest, CausingRequest, StateUpdate.Owner, GatheredInputs.Holder {
    private final ExecutionScope scope;
    private final ExecutionBatch batch;
    private final Executable inputs;

    /** The number of the execution; the request may be in a later one when this is used last. */
    private final int execution;

    private @Nullable GatheredInputs gathered;
    private final @Nullable BatchOutputs outputs;
    private @Nullable ResponseBuilder builder;
    private @Nullable StateUpdates states;

    /** The state updates of the whole batch; {@code null} for none. */
    private @Nullable StateUpdates statesOfBatch;

    /** The state updates to be stored, from {@link #cutStates} on. */
    private List<StateUpdates.Part> newStates = List.of();

    /** Detects when the backend can reach nothing of the request any more; {@code null} until it is needed. */
    private @Nullable Reachability reachability;

    /** The sender as the backend has it; {@code null} until it is requested. */
    private @Nullable SenderHandle sender;

    /** The event to deliver at the end of the execution. */
    private @Nullable ResponseEvent settled;

    private boolean delivered;

    /** {@code true} if the backend reschedules the request; from {@link #settle} on, if the request is rescheduled. */
    private boolean rescheduled;

    /**
     * {@code true} if the backend completes the request by its sender, which was passed out during this execution. A
     * rescheduled request is attached again.
     */
    private volatile boolean detached;

    /** {@code true} if the backend failed the request during this execution. */
    private volatile boolean failed;

    /** {@code true} if finished. Volatile for threads with a sender: only the exception for wrong use depends on it. */
    private volatile boolean finished;

    /**
     * Creates the view of a request.
     *
     * @param inputs the request with the inputs that the execution adds
     * @param gathered the inputs of its batch, or {@code null} for a batch of one that derives none
     * @param outputs the outputs of its batch, or {@code null} for a batch of one
     */
    BackendRequest(
            ExecutionScope scope,
            ExecutionBatch batch,
            Executable inputs,
            @Nullable GatheredInputs gathered,
            @Nullable BatchOutputs outputs) {
        this.scope = scope;
        this.batch = batch;
        this.inputs = inputs;
        ScheduledRequest request = inputs.request();
        this.execution = request.execution();
        this.outputs = outputs;
        if (execution > 1) {
            gatheredBy(gathered);
        } else {
            this.gathered = gathered;
        }
    }

    /** Sets the inputs of the batch, also for a stream that was opened before. */
    void gatheredBy(@Nullable GatheredInputs inputs) {
        gathered = inputs;
        if (scheduled().delivery().channel() instanceof ResponseStream stream) {
            stream.executedWith(inputs);
        }
    }

    @Override
    public @Nullable GatheredInputs gathered() {
        return gathered;
    }

    @Override
    CheckedRequest checked() {
        if (finished && !scheduled().delivery().isStreamOpen()) {
            throw new IllegalStateException("request '"
                    + Quoted.text(scheduled().checked().id()) + "': its execution is finished (expected: not yet)");
        }
        return scheduled().checked();
    }

    @Override
    public List<String> inputs() {
        checked();
        return NamedTensors.names(scheduled().inputs());
    }

    @Override
    public Optional<Tensor> input(String name) {
        checked();
        Tensor found = NamedTensors.find(scheduled().inputs(), name);
        return Optional.ofNullable(
                found == null || !scope.tracksInputs() || checked().options().callerOwnsInputs()
                        ? found
                        : reachability().view(found));
    }

    private Reachability reachability() {
        if (reachability == null) {
            SenderHandle held = heldSender();
            reachability = held == null ? new Reachability() : held.reachability();
        }
        return reachability;
    }

    /** Returns the sender of an earlier execution; {@code null} for none. */
    private @Nullable SenderHandle heldSender() {
        return scheduled().delivery().channel() instanceof ResponseStream stream ? stream.held() : null;
    }

    @Override
    public Optional<Sequence> sequence() {
        checked();
        return scheduled().sequence(execution);
    }

    @Override
    public CallChain chain() {
        return holdsNothing()
                ? checked().options().callers().with(new Hold(batch, Hold.Kind.REQUEST))
                : batch.chain(Hold.Kind.EXECUTION);
    }

    @Override
    public Object waiting() {
        return holdsNothing() ? this : batch;
    }

    /**
     * Returns whether the execution goes on, or has ended, without regard to this request. Before the backend returns,
     * it may wait for the requests that it sends, although a sender responds.
     */
    private boolean holdsNothing() {
        return detached && (batch.isDeferred() || batch.hasReturned());
    }

    @Override
    public boolean isCompleted() {
        return scheduled().isCompleted();
    }

    @Override
    public Optional<Runnable> keep(Tensor input) {
        checked();
        Optional<Runnable> own = MemoryRanges.contain(scheduled().inputs(), input)
                ? scheduled().keep(input)
                : Optional.empty(); // it may span the inputs of several requests
        return own.or(() -> Optional.ofNullable(retain(input)).map(memory -> memory::release))
                .or(() -> scheduled().keep(input));
    }

    @Override
    public CancelHook onCancel(Runnable action) {
        return scheduled().onCancel(action, execution);
    }

    @Override
    public InferenceResponse response() {
        if (scheduled().model().settings().decoupled()) {
            throw new IllegalStateException("response: the model is decoupled (expected: sender)");
        }
        checked();
        if (detached) {
            throw new IllegalStateException("response: the request has a sender (expected: a response of that)");
        }
        return builder();
    }

    @Override
    public Runnable leaseInputs() {
        checked();
        return scope.handles().lease(scheduled().leaseInputs(), reachability());
    }

    @Override
    public SequenceState state(String output) {
        checked();
        if (states == null) {
            states = new StateUpdates(
                    scheduled().model(), inputs.states(), scheduled().checked().batchSize(), this);
        }
        return states.state(output);
    }

    @Override
    public boolean isInput(Tensor tensor) {
        return gathered == null ? MemoryRanges.overlap(scheduled().inputs(), tensor) : gathered.isInput(tensor);
    }

    @Override
    public @Nullable ReferenceCountedMemory retain(Tensor tensor) {
        ReferenceCountedMemory memory = gathered == null ? null : gathered.retainGathered(tensor);
        if (memory == null && builder != null) {
            memory = builder.retain(tensor);
        }
        if (memory == null && detached && scheduled().delivery().channel() instanceof ResponseStream stream) {
            memory = stream.retain(tensor);
        }
        return memory == null && outputs != null ? outputs.retain(tensor) : memory;
    }

    @Override
    public Tensor received(Tensor value, ReferenceCountedMemory memory) {
        return batch.received(value, memory);
    }

    @Override
    public void copied(String output) {
        StateSink sink = inputs.isNull() ? null : inputs.states();
        if (sink != null) {
            sink.copied(1);
        }
    }

    @Override
    public void copyPresent(String output, Tensor target) {
        copyPresent(output, target, 0, 1);
    }

    /** Copies the present value to one of the equal parts of a new one. */
    void copyPresent(String output, Tensor target, int part, int parts) {
        StateSink sink = inputs.isNull() ? null : inputs.states();
        Tensor present = sink == null ? null : sink.present(output);
        if (sink != null && present != null && target.type().isFixedSize()) {
            long size = target.byteSize() / parts;
            long copied = Math.min(size, present.byteSize());
            DeviceCopies.copy(
                    DeviceCopies.bytesOf(present, copied),
                    target.place(),
                    target.data().asSlice(part * size, copied),
                    scheduled().model().memory());
            sink.copied(1);
        }
    }

    @Override
    public boolean isWrittenElsewhere(String output) {
        return statesOfBatch != null && statesOfBatch.isWritten(output);
    }

    /** Returns whether the backend wrote an update of a state for this request alone. */
    boolean isWritten(String output) {
        return states != null && states.isWritten(output);
    }

    void statesOfBatch(StateUpdates ofBatch) {
        statesOfBatch = ofBatch;
    }

    /**
     * Cuts the state updates of the request, and fails the request if an update is not valid. Called before
     * {@link #settle}, so that the request fails as a whole.
     *
     * @param ofBatch the state updates of the whole batch; {@code null} for none
     */
    void cutStates(@Nullable StateUpdates ofBatch, int firstItem) {
        if (inputs.isNull() || (ofBatch == null && states == null)) {
            return;
        }
        int count = scheduled().checked().batchSize();
        try {
            List<StateUpdates.Part> cut = new ArrayList<>(2);
            if (ofBatch != null) {
                ofBatch.cut(firstItem, count, cut);
            }
            if (states != null) {
                states.cut(0, count, cut);
            }
            newStates = cut;
        } catch (BackendException e) {
            failUnchecked(e);
        } catch (RuntimeException e) {
            failUnchecked(SchedulerErrors.unexpected(scheduled().model().settings(), e));
            scheduled().log("states of request are not stored", e);
        }
    }

    /** Stores the state updates of the request if it did not fail, and ends their use. */
    void storeStates(boolean succeeded) {
        StateSink sink = inputs.states();
        try {
            if (succeeded && !hasFailed() && sink != null) {
                for (StateUpdates.Part state : newStates) {
                    state.store(sink);
                }
            }
        } catch (RuntimeException e) { // the present value stays
            scheduled().log("storing a state failed", e);
        } finally {
            if (states != null) {
                states.end();
            }
        }
    }

    /** Returns whether the backend failed the request, also by its sender. */
    private boolean hasFailed() {
        return failed || (scheduled().delivery().channel() instanceof ResponseStream stream && stream.hasFailed());
    }

    @Override
    ScheduledRequest scheduled() {
        return inputs.request();
    }

    @Override
    public boolean isNullRequest() {
        return inputs.isNull();
    }

    @Override
    public void reschedule() {
        if (!scope.iterative()) {
            throw new IllegalStateException(
                    "reschedule: the model has no iterative sequences (expected: iterative_sequence)");
        }
        checked();
        ResponseChannel opened = scheduled().delivery().channel();
        if (finished || rescheduled || (opened != null && opened.isEnded())) {
            throw new IllegalStateException("reschedule: "
                    + (rescheduled ? "called twice" : finished ? "the execution is finished" : "the sender is ended")
                    + " (expected: once for each execution, before its end)");
        }
        rescheduled = true;
        if (sender != null && opened instanceof ResponseStream stream) {
            stream.hold(sender); // for the next execution
        }
    }

    @Override
    public void fail(BackendException error) {
        StackReserve.require();
        failUnchecked(error);
    }

    /** Fails the request without a check of the stack, at the end of the execution. */
    private void failUnchecked(BackendException error) {
        failed = true;
        scheduled().complete(ResponseEvent.Failure.of(error, FailureReason.BACKEND), execution);
    }

    @Override
    public ResponseSender sender() {
        checked();
        ResponseDelivery delivery = scheduled().delivery();
        ResponseChannel opened = delivery.channel();
        if (opened == null) {
            opened = new ResponseStream(scope, scheduled(), gathered);
            delivery.open(opened);
        }
        if (sender == null && opened instanceof ResponseStream stream) {
            SenderHandle held = stream.held();
            sender = held == null ? scope.handles().sender(stream, reachability()) : held;
        }
        if (!detached && !finished) {
            detached = true;
            scheduled().detach();
            if (opened instanceof ResponseStream stream) {
                stream.hold(rescheduled ? sender : null);
            }
        }
        return requireNonNull(sender, "sender");
    }

    /** Returns the builder of the response that is sent when the execution is finished. */
    ResponseBuilder builder() {
        if (builder == null) {
            builder = new ResponseBuilder(scope, scheduled(), this, batch, outputs);
        }
        return builder;
    }

    /** Returns whether an output was added to the response. */
    boolean has(OutputSpec output) {
        return builder != null && builder.has(output);
    }

    /** Completes the request with an error, unless it is completed or the backend completes it by its sender. */
    void failUnlessDetached(ResponseEvent.Failure failure) {
        failed = true;
        if (!detached) {
            scheduled().complete(failure, execution);
        }
    }

    /**
     * Decides whether and how the request ends at the end of its execution. Has no effect on a request that is
     * completed, or that the backend completes by its sender. {@link #finish} has to follow.
     *
     * @param failure the failure of the execution, or {@code null}
     * @param tally counts the outcome
     * @param rescheduler takes requests that are to be rescheduled; {@code null} if none may be
     */
    void settle(
            ResponseEvent.@Nullable Failure failure,
            int index,
            int firstItem,
            ExecutionTally tally,
            @Nullable Rescheduler rescheduler) {
        boolean reschedules = rescheduled && failure == null && !failed;
        if (rescheduled && !reschedules && scheduled().delivery().channel() instanceof ResponseStream stream) {
            stream.hold(null);
        }
        rescheduled = false;
        if (reschedules) {
            detached = false;
        }
        if (scheduled().isCompleted() || detached) {
            return;
        }
        try {
            if (reschedules && rescheduler != null && !inputs.isNull()) {
                scheduled().setPosition(rescheduler.newPosition(scheduled()));
                rescheduled = scheduled().closeActions();
            }
            if (rescheduled) {
                return;
            }
            settled = scheduled().settle(failure == null ? terminalEvent(index, firstItem) : failure, execution);
        } catch (BackendException e) {
            failed = true;
            settled = scheduled().settle(ResponseEvent.Failure.of(e, FailureReason.BACKEND), execution);
        } catch (RuntimeException | Error e) { // of memory or a fence of the backend, or its stack is used up
            failed = true;
            BackendException error =
                    SchedulerErrors.unexpected(scheduled().model().settings(), e);
            settled = scheduled().settle(ResponseEvent.Failure.of(error, FailureReason.OTHER), execution);
            scheduled().log("completion of request failed", e);
        }
        if (settled != null && !inputs.isNull()) {
            scheduled().count(settled, tally);
        }
    }

    boolean mayBePending() {
        return (outputs == null || outputs.mayBePending(scheduled())) && (builder == null || builder.mayBePending());
    }

    /** Delivers a response with pending outputs; before {@link #finish}. */
    void deliverPending() {
        if (settled instanceof FinishedResponse response && response.isPending()) {
            deliver(response);
        }
    }

    private void deliver(ResponseEvent event) {
        if (delivered) {
            return;
        }
        delivered = true;
        try {
            scheduled().delivery().deliver(event);
        } catch (RuntimeException e) { // the other requests complete all the same
            scheduled().log("completion of request failed", e);
        }
    }

    /**
     * Delivers the settled event, unless that is done, and releases the execution's reference to the request. Keeps the
     * reference of a request that is to be rescheduled.
     */
    void finish() {
        try {
            if (settled != null) {
                deliver(settled);
            }
        } finally {
            finished = true;
            if (builder != null) {
                builder.discard();
            }
            if (!rescheduled) {
                if (settled instanceof FinishedResponse
                        && !scheduled().delivery().isStreaming()) {
                    scheduled().freeInputs();
                }
                release();
            }
        }
    }

    private void release() {
        scheduled().endExecutions(!detached);
    }

    /** Reschedules the request, if it is to be, after {@link #finish}; returns whether it has to be queued. */
    boolean reschedule(long nowNanos) {
        boolean waits = rescheduled && scheduled().reschedule(execution, nowNanos);
        if (rescheduled && !waits) { // completed
            release();
        }
        return waits;
    }

    /** Releases the execution, with the parameters and the result of {@link Executable#released}. */
    @Nullable
    Runnable released(boolean waits, @Nullable Runnable before) {
        try {
            return inputs.released(waits, before);
        } catch (RuntimeException e) { // the other requests are released all the same
            scheduled().log("release of execution failed", e);
            return before;
        }
    }

    private ResponseEvent terminalEvent(int index, int firstItem) {
        if (scheduled().isCancelled() || inputs.isNull()) {
            return ResponseEvent.END; // delivered as cancelled, or dropped
        }
        ResponseBuilder response = builder();
        if (outputs != null) {
            outputs.putParts(index, firstItem, response);
        }
        return response.isEmpty() && scheduled().model().settings().decoupled()
                ? ResponseEvent.END
                : response.finish(true);
    }
}
