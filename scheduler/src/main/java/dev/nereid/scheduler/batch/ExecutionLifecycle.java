package dev.nereid.scheduler.batch;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.call.CallChain;
import dev.nereid.api.call.Hold;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.memory.OutputFences;
import dev.nereid.scheduler.memory.OutputReceiver;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.Continuations;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ObserverScope;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.statistics.ExecutionTally;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Tensor;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Starts and ends the execution of a batch, for the instance that executes it. Finish and failure of a deferred
 * execution race for one compare-and-set, and the thread that takes it completes the remaining requests and releases
 * the memory of the batch. Without a deferral the instance's worker ends the batch after the return of its backend.
 *
 * <p>A superclass and no component of {@link ExecutionBatch}, since every batch would need one more object.
 */
abstract sealed class ExecutionLifecycle implements OutputReceiver permits ExecutionBatch {
    private static final VarHandle ENDED;
    private static final VarHandle FENCES;

    static {
        try {
            FENCES = MethodHandles.lookup().findVarHandle(ExecutionLifecycle.class, "fences", OutputFences.class);
            ENDED = MethodHandles.lookup().findVarHandle(ExecutionLifecycle.class, "ended", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    final ExecutionScope scope;

    /** The requests as the backend sees them; filled by the subclass. */
    final BackendRequest[] executed;

    final List<ScheduledRequest> scheduled;

    /** The first request of a client. */
    final ScheduledRequest first;

    /** The source of the requests, if it takes them back; {@code null} otherwise. */
    private final @Nullable Rescheduler rescheduler;

    /** The rescheduled requests; empty until the end. */
    private final List<ScheduledRequest> rescheduled;

    /** {@code true} if the execution has ended; the thread that sets it ends it. */
    private volatile boolean ended;

    /** The fences of pending outputs; {@code null} for none. Any thread may set it, once. */
    private volatile @Nullable OutputFences fences;

    /** {@code true} if responses are delivered while their outputs are pending; set at the end. */
    private boolean deliversPending;

    private long awaitedNanos;

    /** The actions after a deferred execution; {@code null} if it is not deferred. Written once, read by any thread. */
    private volatile @Nullable EndActions afterwards;

    /** The thread that executes the batch; written before other threads see the batch. */
    private @Nullable Thread thread;

    private boolean direct;

    /** {@code true} if the backend has returned; written before the end. */
    private boolean returned;

    /** Written once; the watchdog may see it late. */
    private long startNanos;

    private boolean started;
    private long inputsNanos;
    private long outputsNanos;
    private boolean inputsMarked;
    private boolean outputsMarked;

    /**
     * Begins without an execution, and adds the inputs of the execution to the requests.
     *
     * @param begun the requests
     * @param client the first request of a client
     * @param rescheduler takes the requests back when the execution has ended; {@code null} if none is rescheduled
     */
    ExecutionLifecycle(
            ExecutionScope scope,
            List<? extends Executable> begun,
            Executable client,
            @Nullable Rescheduler rescheduler) {
        this.scope = scope;
        this.rescheduler = rescheduler;
        this.rescheduled = rescheduler == null ? List.of() : new ArrayList<>(begun.size());
        this.first = client.request();
        this.executed = new BackendRequest[begun.size()];
        if (executed.length == 1) {
            first.add(client);
            scheduled = List.of(first);
        } else {
            ScheduledRequest[] all = new ScheduledRequest[executed.length];
            for (int i = 0; i < all.length; i++) {
                Executable inputs = begun.get(i);
                all[i] = inputs.request();
                all[i].add(inputs);
            }
            scheduled = Arrays.asList(all);
        }
    }

    /** Cuts the state updates of each request; called before the requests are settled, after a success. */
    abstract void cutStates();

    /** Returns whether every request may be completed with pending outputs. */
    abstract boolean mayBePending();

    /** Releases the inputs that were gathered; called when all outputs are settled. */
    abstract void releaseInputs();

    /** Stores the state updates, and releases the outputs of the batch; called when all responses are delivered. */
    abstract void releaseOutputs(boolean succeeded);

    /** Records the start of the execution; called before the backend. */
    public void started(long nanos) {
        startNanos = nanos;
        started = true;
        for (int i = 0; i < scheduled.size(); i++) {
            scheduled.get(i).started(nanos);
        }
    }

    /**
     * Records the thread that executes the batch. Called before another thread sees the batch.
     *
     * @param isSubmitting whether it is a submitting thread, and not the thread of the instance
     */
    public void executedBy(Thread executing, boolean isSubmitting) {
        thread = executing;
        direct = isSubmitting;
    }

    /** Returns whether a submitting thread executes the batch. Called by that thread. */
    public boolean isDirect() {
        return direct;
    }

    /** Returns the thread that executes the batch; {@code null} before {@link #executedBy}. */
    @Nullable
    public Thread thread() {
        return thread;
    }

    /** Returns whether the execution has started. Another thread may see it late. */
    public boolean isStarted() {
        return started;
    }

    /** Returns whether the backend has returned, and the execution ends or has ended. Called by any thread. */
    public boolean hasReturned() {
        return ended && returned; // in this order: the volatile field publishes the other
    }

    /** Returns when the execution started. */
    public long startNanos() {
        return startNanos;
    }

    /** As of {@link dev.nereid.spi.Batch#inputsRead}. */
    public void inputsRead() {
        checkOpen();
        inputsNanos = scope.model().nanoTime().getAsLong();
        inputsMarked = true;
    }

    /** As of {@link dev.nereid.spi.Batch#outputsComputed}. */
    public void outputsComputed() {
        checkOpen();
        outputsNanos = scope.model().nanoTime().getAsLong();
        outputsMarked = true;
    }

    /** As of {@link dev.nereid.spi.Batch#defer}. */
    public DeferredExecution defer() {
        checkOpen();
        if (afterwards != null) {
            throw new IllegalStateException("defer: called twice (expected: once)");
        }
        afterwards = new EndActions();
        scheduled.forEach(ScheduledRequest::detach);
        return new Deferred();
    }

    /** Returns the requests, those without a client included. */
    public List<ScheduledRequest> scheduled() {
        return scheduled;
    }

    /**
     * Returns the call chain of a request that the execution causes: the models and the execution that wait for it.
     *
     * @param kind the kind of the hold that the execution has meanwhile
     */
    public CallChain chain(Hold.Kind kind) {
        CallChain chain = CallChain.NONE;
        for (int i = 0; i < scheduled.size(); i++) {
            chain = chain.join(scheduled.get(i).checked().options().callers());
        }
        return chain.with(new Hold(this, kind));
    }

    /** Returns whether a model executes the batch. */
    @SuppressWarnings("ReferenceEquality") // Each version has its own scope.
    public boolean isOf(ModelScope model) {
        return scope.model() == model;
    }

    public List<String> requestIds() {
        return scheduled.stream().map(request -> request.checked().id()).toList();
    }

    /** Ends the execution after a return of the backend, unless the backend deferred it. */
    public void returned(long nowNanos) {
        returned = true;
        if (!isDeferred()) {
            end(null, nowNanos);
        }
    }

    /** Returns whether the backend deferred the execution. Called by any thread. */
    public boolean isDeferred() {
        return afterwards != null;
    }

    /**
     * Completes the remaining requests after an error of the backend. Ends the execution unless the backend deferred
     * it.
     */
    public void threw(ResponseEvent.Failure failure, long nowNanos) {
        returned = true;
        if (!isDeferred()) {
            end(failure, nowNanos);
            return;
        }
        for (BackendRequest request : executed) {
            request.failUnlessDetached(failure);
        }
    }

    /** Abandons the requests. */
    public void abandon() {
        scheduled.forEach(ScheduledRequest::abandon);
    }

    /** Abandons the requests before the execution, and ends the batch. */
    public void refuse(long nowNanos) {
        abandon();
        // The failure is never delivered, since all requests are completed.
        end(ResponseEvent.Failure.abandoned(first.checked()), nowNanos);
    }

    /**
     * Runs an action once, when the execution has ended. It runs now, or on the thread that ends it, after earlier
     * actions. Called after the backend.
     */
    public void onEnd(Runnable action) {
        EndActions deferred = afterwards;
        if (deferred == null) {
            action.run();
        } else {
            deferred.add(action);
        }
    }

    @Override
    public Tensor received(Tensor output, ReferenceCountedMemory memory) {
        if (output.fence().isEmpty()) {
            return output;
        }
        if (fences == null) {
            FENCES.compareAndSet(this, null, new OutputFences());
        }
        return requireNonNull(fences).add(scope.isolated(output), memory);
    }

    /** Settles all requests, counts them together with the execution, and only then calls their observers. */
    private void end(ResponseEvent.@Nullable Failure failure, long nowNanos) {
        if (!ENDED.compareAndSet(this, false, true)) {
            return;
        }
        try {
            endOnce(failure, nowNanos);
        } finally {
            EndActions deferred = afterwards;
            if (deferred != null) {
                deferred.run();
            }
        }
    }

    private void endOnce(ResponseEvent.@Nullable Failure failure, long calledNanos) {
        OutputFences pending = fences;
        deliversPending = pending != null && failure == null && mayBePending();
        boolean computed = true;
        long nowNanos = calledNanos;
        if (pending != null && !deliversPending) {
            computed = await(pending);
            nowNanos = calledNanos + awaitedNanos;
        }
        ExecutionTally tally = new ExecutionTally(
                startNanos, inputsMarked ? inputsNanos : startNanos, outputsMarked ? outputsNanos : nowNanos, nowNanos);
        tally.ranOn(first.device());
        if (failure == null) {
            tally.executed(BatchEnds.items(executed));
            cutStates();
        }
        BatchEnds.settle(executed, failure, tally, rescheduler);
        scope.model().meter().record(tally);
        if (pending != null && deliversPending) {
            computed = deliverBefore(pending);
            scope.model().meter().computed(tally, awaitedNanos);
        }
        releaseInputs();
        ObserverScope observers = ObserverScope.current();
        observers.open(); // requests that follow from this batch are queued together
        try {
            BatchEnds.finish(executed);
        } finally {
            observers.close();
        }
        releaseOutputs(failure == null && computed);
        BatchEnds.reschedule(executed, rescheduler, rescheduled, nowNanos);
    }

    /**
     * Delivers the responses with pending outputs, and waits for the fences. Clients that read the outputs wait for the
     * fences, too.
     */
    private boolean deliverBefore(OutputFences pending) {
        boolean succeeded;
        try {
            deliverPending();
        } catch (RuntimeException | Error e) {
            scope.model().fatalErrors().check(e);
            first.log("delivery of responses failed", e);
        } finally {
            succeeded = await(pending);
        }
        return succeeded;
    }

    private void deliverPending() {
        ObserverScope observers = ObserverScope.current();
        Continuations continuations = Continuations.current();
        BooleanSupplier before = continuations.enter(() -> false); // this thread waits next
        observers.open();
        try {
            BatchEnds.deliverPending(executed);
        } finally {
            observers.close();
            continuations.exit(before);
        }
    }

    /**
     * Waits for fences: inputs, buffers and outputs stay meanwhile. Returns whether the work of the devices succeeded.
     */
    private boolean await(OutputFences pending) {
        long start = scope.model().nanoTime().getAsLong();
        boolean succeeded = pending.await();
        awaitedNanos = scope.model().nanoTime().getAsLong() - start;
        return succeeded;
    }

    @Override
    public boolean deliversPending() {
        return deliversPending;
    }

    /** Returns whether any output has a fence. */
    public boolean hasFences() {
        return fences != null;
    }

    /** Returns how long the end of the execution waited for fences, in nanoseconds. */
    public long awaitedNanos() {
        return awaitedNanos;
    }

    boolean hasEnded() {
        return ended;
    }

    /** Throws if the execution has ended. */
    void checkOpen() {
        if (ended) {
            throw new IllegalStateException("batch: its execution is finished (expected: not yet)");
        }
    }

    /** The handle of a deferred execution. Safe for use by any thread. */
    private final class Deferred implements DeferredExecution {
        @Override
        public void complete() {
            end(null, scope.model().nanoTime().getAsLong());
        }

        @Override
        public void fail(BackendException error) {
            end(
                    ResponseEvent.Failure.of(error, FailureReason.BACKEND),
                    scope.model().nanoTime().getAsLong());
        }
    }

    /**
     * The actions after the end of one deferred execution. Lock-free; safe for use by any thread.
     *
     * <p>An action is added before the end and runs then, or after it and runs at once.
     */
    private static final class EndActions {
        /** Marks the end, in place of the actions. */
        private static final class Ended implements Runnable {
            @Override
            public void run() {}
        }

        /** The actions so far in one; {@code null} for none, {@link Ended} after the end. */
        private final AtomicReference<@Nullable Runnable> actions = new AtomicReference<>();

        /** Adds an action, or runs it if the execution has ended. */
        void add(Runnable action) {
            boolean added = false;
            while (!added) {
                Runnable before = actions.get();
                if (before instanceof Ended) {
                    action.run();
                    return;
                }
                added = actions.compareAndSet(before, before == null ? action : () -> runBoth(before, action));
            }
        }

        private static void runBoth(Runnable first, Runnable second) {
            try {
                first.run();
            } finally {
                second.run();
            }
        }

        /** Runs all actions, in the order in which they were added. Called once. */
        void run() {
            Runnable added = actions.getAndSet(new Ended());
            if (added != null) {
                added.run();
            }
        }
    }
}
