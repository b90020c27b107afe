package dev.nereid.scheduler.batch;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.call.CallChain;
import dev.nereid.api.call.Hold;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.memory.OutputFences;
import dev.nereid.scheduler.memory.OutputReceiver;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.memory.StackReserve;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Continuations;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ObserverScope;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.request.StateSink;
import dev.nereid.scheduler.statistics.ExecutionTally;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.BitSet;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The batch of one execution, as its backend sees it, with its start and end for the instance that executes it.
 * Confined to the execution, except for its end.
 *
 * <p>Finish and failure of a deferred execution race for one compare-and-set, and the thread that takes it completes
 * the remaining requests and releases the memory of the batch. Without a deferral the instance's worker ends the batch
 * after the return of its backend.
 *
 * <p>A batch of one request is the usual case at low load: it does not join or split tensors, inputs and outputs are
 * the request's own.
 */
public final class ExecutionBatch implements Batch, OutputReceiver {
    private static final VarHandle ENDED;
    private static final VarHandle FENCES;

    static {
        try {
            FENCES = MethodHandles.lookup().findVarHandle(ExecutionBatch.class, "fences", OutputFences.class);
            ENDED = MethodHandles.lookup().findVarHandle(ExecutionBatch.class, "ended", boolean.class);
        } catch (ReflectiveOperationException e) {
            throw new ExceptionInInitializerError(e);
        }
    }

    final ExecutionScope scope;

    /** The requests as the backend sees them; filled at the creation. */
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

    /** The content of {@link #executed}, for the backend. */
    private final List<InferenceRequest> requests;

    private final int size;

    /** The inputs that are joined or moved; {@code null} as long as the only request has its own in place. */
    private @Nullable GatheredInputs gathered;

    private final @Nullable BatchOutputs outputs;

    /** Stores the states of the model; {@code null} if it has none. */
    private final @Nullable StateSink sink;

    /** The state updates of all requests together; {@code null} for none. */
    private @Nullable StateUpdates states;

    /** Creates a batch of begun requests that cannot be rescheduled; takes over the queue's reference to each. */
    public ExecutionBatch(ExecutionScope scope, List<? extends Executable> begun) {
        this(scope, begun, null);
    }

    /**
     * Creates a batch of begun requests; takes over the queue's reference to each.
     *
     * @param begun the requests, at least one of which is from a client
     * @param rescheduler takes the requests back when the execution has ended; {@code null} if none is rescheduled
     */
    public ExecutionBatch(ExecutionScope scope, List<? extends Executable> begun, @Nullable Rescheduler rescheduler) {
        Executable client = firstOfClients(begun);
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
        this.sink = client.states();
        boolean one = executed.length == 1;
        int items = 0;
        for (int i = 0; i < scheduled.size(); i++) {
            items += scheduled.get(i).checked().batchSize();
        }
        size = items;
        boolean inPlace =
                one && scope.derived().isEmpty() && first.checked().inputs().areOnHost();
        gathered = inPlace ? null : new GatheredInputs(scope, scheduled, sink == null ? List.of() : List.copyOf(begun));
        outputs = one ? null : new BatchOutputs(scope, scheduled, size);
        for (int i = 0; i < executed.length; i++) {
            executed[i] = new BackendRequest(scope, this, begun.get(i), gathered, outputs);
        }
        requests = List.of(executed);
    }

    private static Executable firstOfClients(List<? extends Executable> begun) {
        int index = 0;
        while (begun.get(index).isNull()) {
            index++;
        }
        return begun.get(index);
    }

    @Override
    public List<InferenceRequest> requests() {
        checkOpen();
        return requests;
    }

    @Override
    public int size() {
        checkOpen();
        return size;
    }

    @Override
    public Set<String> inputs() {
        checkOpen();
        if (first.inputs().size() == scope.model().settings().inputs().size() && !hasOverrides()) {
            return scope.inputs();
        }
        Set<String> names = new LinkedHashSet<>(executed[0].inputs());
        scope.derived().addTo(names);
        return Collections.unmodifiableSet(names);
    }

    /** Returns whether the requests have inputs that are not in the configuration. Only a warm-up may have such. */
    private boolean hasOverrides() {
        List<NamedTensor> inputs = first.inputs();
        return !inputs.isEmpty() && !scope.inputs().contains(inputs.getLast().name());
    }

    @Override
    public Set<String> requestedOutputs() {
        checkOpen();
        Set<String> all = scope.outputs().keySet();
        Set<String> requested = new HashSet<>();
        for (BackendRequest request : executed) {
            if (request.requestedOutputs().size() == all.size()) {
                return all;
            }
            requested.addAll(request.requestedOutputs());
        }
        Set<String> ordered = new LinkedHashSet<>(all);
        ordered.retainAll(requested);
        return Collections.unmodifiableSet(ordered);
    }

    @Override
    public boolean takesOutput(String output, MemoryPlace place) {
        checkOpen();
        boolean takes = false;
        for (int i = 0; i < executed.length; i++) {
            CheckedRequest request = scheduled.get(i).checked();
            if (!executed[i].isNullRequest() && request.requestsOutput(output)) {
                if (!request.takesOutput(output, place)) {
                    return false;
                }
                takes = true;
            }
        }
        return takes;
    }

    @Override
    public Tensor gather(String input) {
        return gather(input, MemoryPlace.HOST);
    }

    @Override
    public Tensor gather(String input, MemoryPlace place) {
        checkOpen();
        GatheredInputs inputs = gathered;
        if (inputs == null && place.kind() == MemoryPlace.Kind.HOST) {
            Tensor single = GatheredInputs.single(scope.model(), first, input);
            if (single.place().isHost()) { // a state may lie on a device
                return single;
            }
        }
        if (inputs == null) {
            inputs = new GatheredInputs(scope, scheduled, List.of());
            gathered = inputs;
            executed[0].gatheredBy(inputs);
        }
        return inputs.gather(input, place);
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape) {
        return allocate(output, type, shape, MemoryPlace.HOST);
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape, MemoryPlace place) {
        checkOpen();
        if (outputs == null) {
            Shape part = shapeOfSingle(output, shape);
            return in(shape, part, executed[0].builder().allocate(output, type, part, place));
        }
        return outputs.allocate(check(outputs, output, type, shape), type, shape, place);
    }

    @Override
    public Tensor allocateBytes(String output, Shape shape, long byteSize) {
        checkOpen();
        if (outputs == null) {
            Shape part = shapeOfSingle(output, shape);
            return in(shape, part, executed[0].builder().allocateBytes(output, part, byteSize));
        }
        return outputs.allocateBytes(check(outputs, output, DataType.BYTES, shape), shape, byteSize);
    }

    @Override
    public void fence(String output, Fence fence) {
        checkOpen();
        if (outputs == null) {
            executed[0].builder().fence(output, fence);
        } else {
            outputs.fence(output, fence, this);
        }
    }

    @Override
    public void put(String output, Tensor tensor, Runnable release) {
        if (hasEnded()) {
            ReferenceCountedMemory.of(release, null).release();
            checkOpen();
        }
        GatheredInputs inputs = gathered;
        if (outputs == null || inputs == null) {
            putToSingle(output, tensor, release);
            return;
        }
        ReferenceCountedMemory memory = ReferenceCountedMemory.of(release, inputs.retain(tensor, null));
        OutputSpec spec;
        Tensor received = null;
        try {
            spec = check(outputs, output, tensor.type(), tensor.shape());
            OutputChecks.checkMemory(scope.model(), spec, tensor);
            received = received(tensor, memory);
        } finally {
            if (received == null) {
                memory.release();
            }
        }
        outputs.add(spec, received, memory);
    }

    private void putToSingle(String output, Tensor tensor, Runnable release) {
        Shape shape;
        try {
            shape = shapeOfSingle(output, tensor.shape());
        } catch (RuntimeException e) {
            ReferenceCountedMemory.of(release, null).release();
            throw e;
        }
        executed[0].builder().put(output, in(shape, tensor.shape(), tensor), release);
    }

    /** Returns a tensor in another shape. */
    private static Tensor in(Shape requested, Shape current, Tensor tensor) {
        return requested.equals(current) ? tensor : tensor.withShape(requested);
    }

    /** Returns the shape of an output of the batch for its only request. */
    private Shape shapeOfSingle(String output, Shape shape) {
        return ScatteredParts.ofSingle(scope.model(), scope.outputs().get(output), scheduled, shape);
    }

    private OutputSpec check(BatchOutputs all, String output, DataType type, Shape shape) {
        OutputSpec spec = all.check(output, type, shape);
        for (BackendRequest request : executed) {
            if (request.has(spec)) {
                throw SchedulerErrors.duplicateOutput(scope.model().settings(), output);
            }
        }
        return spec;
    }

    @Override
    public SequenceState state(String output) {
        checkOpen();
        if (executed.length == 1) {
            return executed[0].state(output);
        }
        if (states == null) {
            states = new StateUpdates(scope.model(), sink, size, new RequestsMemory());
            for (BackendRequest request : executed) {
                request.statesOfBatch(states);
            }
        }
        return states.state(output);
    }

    /** Returns whether every request may be completed with pending outputs. */
    private boolean mayBePending() {
        if (sink != null) {
            return false; // states are written when the requests are settled
        }
        for (BackendRequest request : executed) {
            if (!request.isNullRequest() && !request.mayBePending()) {
                return false;
            }
        }
        return true;
    }

    /** Releases the inputs that were gathered; called when all outputs are settled. */
    private void releaseInputs() {
        if (gathered != null) {
            gathered.release();
        }
    }

    /** Cuts the state updates of each request; called before the requests are settled, after a success. */
    private void cutStates() {
        if (sink == null) {
            return;
        }
        if (states != null) {
            states.written(itemsOfNullRequests());
        }
        int firstItem = 0;
        for (BackendRequest request : executed) {
            request.cutStates(states, firstItem);
            firstItem += request.scheduled().checked().batchSize();
        }
    }

    private BitSet itemsOfNullRequests() {
        BitSet items = new BitSet();
        int firstItem = 0;
        for (BackendRequest request : executed) {
            int next = firstItem + request.scheduled().checked().batchSize();
            if (request.isNullRequest()) {
                items.set(firstItem, next);
            }
            firstItem = next;
        }
        return items;
    }

    /** Stores the state updates, and releases the outputs of the batch; called when all responses are delivered. */
    private void releaseOutputs(boolean succeeded) {
        if (sink != null) {
            for (BackendRequest request : executed) {
                request.storeStates(succeeded);
            }
            if (states != null) {
                states.end();
            }
        }
        if (outputs != null) {
            outputs.release();
        }
    }

    /** The memory of all requests of the batch. */
    private final class RequestsMemory implements StateUpdate.Owner {
        @Override
        public boolean isWrittenElsewhere(String output) {
            for (BackendRequest request : executed) {
                if (request.isWritten(output)) {
                    return true;
                }
            }
            return false;
        }

        @Override
        public void copyPresent(String output, Tensor target) {
            for (int i = 0; i < executed.length; i++) {
                executed[i].copyPresent(output, target, i, executed.length);
            }
        }

        @Override
        public void copied(String output) {
            for (BackendRequest request : executed) {
                request.copied(output);
            }
        }

        @Override
        public Tensor received(Tensor value, ReferenceCountedMemory memory) {
            return ExecutionBatch.this.received(value, memory);
        }

        @Override
        public boolean isInput(Tensor tensor) {
            return executed[0].isInput(tensor); // of any request
        }

        @Override
        public @Nullable ReferenceCountedMemory retain(Tensor tensor) {
            for (BackendRequest request : executed) { // gathered inputs and outputs of the batch included
                ReferenceCountedMemory memory = request.retain(tensor);
                if (memory != null) {
                    return memory;
                }
            }
            return null;
        }
    }

    /** Records the start of the execution; called before the backend. */
    public void started(long nanos) {
        startNanos = nanos;
        started = true;
        for (int i = 0; i < scheduled.size(); i++) {
            scheduled.get(i).started(nanos);
        }
    }

    /** Records the executing thread: a submitting one, or the instance's. Called before another sees the batch. */
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

    public long startNanos() {
        return startNanos;
    }

    @Override
    public void inputsRead() {
        checkOpen();
        inputsNanos = scope.model().nanoTime().getAsLong();
        inputsMarked = true;
    }

    @Override
    public void outputsComputed() {
        checkOpen();
        outputsNanos = scope.model().nanoTime().getAsLong();
        outputsMarked = true;
    }

    @Override
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

    /** Returns the call chain of a request that the execution causes: the models and the execution, with its hold. */
    public CallChain chain(Hold.Kind kind) {
        CallChain chain = CallChain.NONE;
        for (int i = 0; i < scheduled.size(); i++) {
            chain = chain.join(scheduled.get(i).checked().options().callers());
        }
        return chain.with(new Hold(this, kind));
    }

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

    /** Completes the remaining requests after an error of the backend; ends the execution unless it is deferred. */
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

    public void abandon() {
        scheduled.forEach(ScheduledRequest::abandon);
    }

    /** Abandons the requests before the execution, and ends the batch. */
    public void refuse(long nowNanos) {
        abandon();
        // The failure is never delivered, since all requests are completed.
        end(ResponseEvent.Failure.abandoned(first.checked()), nowNanos);
    }

    /** Runs an action once after the end and earlier actions, now or on the ending thread. Called after the backend. */
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
            boolean computed = awaitOutputs(failure == null);
            long endNanos = nowNanos + awaitedNanos;
            boolean cut = false;
            try {
                if (failure == null) {
                    cutStates();
                }
                cut = true;
            } finally { // no other thread would complete the requests
                complete(cut ? failure : statesNotCut(), computed, tally(failure == null, endNanos), endNanos);
            }
        } finally {
            EndActions deferred = afterwards;
            if (deferred != null) {
                deferred.run();
            }
        }
    }

    /** Waits for pending outputs, unless they may be delivered. Returns whether the work of the devices succeeded. */
    private boolean awaitOutputs(boolean succeeded) {
        OutputFences pending = fences;
        deliversPending = pending != null && succeeded && mayBePending();
        return pending == null || deliversPending || await(pending);
    }

    private ExecutionTally tally(boolean succeeded, long nowNanos) {
        ExecutionTally tally = new ExecutionTally(
                startNanos, inputsMarked ? inputsNanos : startNanos, outputsMarked ? outputsNanos : nowNanos, nowNanos);
        tally.ranOn(first.device());
        if (succeeded) {
            tally.executed(items());
        }
        return tally;
    }

    private ResponseEvent.Failure statesNotCut() {
        return ResponseEvent.Failure.of(
                SchedulerErrors.statesNotStored(scope.model().settings()), FailureReason.OTHER);
    }

    /** Completes the requests, whose outputs are computed unless they are delivered before. */
    private void complete(
            ResponseEvent.@Nullable Failure failure, boolean outputsComputed, ExecutionTally tally, long nowNanos) {
        OutputFences pending = fences;
        boolean computed = outputsComputed;
        settle(failure, tally);
        scope.model().meter().record(tally);
        if (pending != null && deliversPending) {
            computed = deliverBefore(pending);
            scope.model().meter().computed(tally, awaitedNanos);
        }
        releaseInputs();
        ObserverScope observers = ObserverScope.current();
        observers.open(); // requests that follow from this batch are queued together
        try {
            for (BackendRequest request : executed) {
                request.finish();
            }
        } finally {
            observers.close();
        }
        releaseOutputs(failure == null && computed);
        reschedule(nowNanos);
    }

    /** Returns the number of items in the batch. Items of null requests count: the backend computes them too. */
    private int items() {
        int items = 0;
        for (BackendRequest request : executed) {
            items += request.scheduled().checked().batchSize();
        }
        return items;
    }

    /** Decides how the requests end, and counts the requests that end. */
    private void settle(ResponseEvent.@Nullable Failure failure, ExecutionTally tally) {
        int firstItem = 0;
        for (int i = 0; i < executed.length; i++) {
            executed[i].settle(failure, i, firstItem, tally, rescheduler);
            firstItem += executed[i].scheduled().checked().batchSize();
        }
    }

    /** Returns the requests to their source, all at once. Called last, when everything of the execution is settled. */
    private void reschedule(long nowNanos) {
        int ofClients = 0;
        Runnable releases = null;
        try {
            for (BackendRequest request : executed) {
                ofClients += request.isNullRequest() ? 0 : 1;
                boolean waits = request.reschedule(nowNanos);
                if (waits) {
                    rescheduled.add(request.scheduled());
                }
                releases = request.released(waits, releases);
            }
        } finally {
            release(releases, ofClients);
        }
    }

    private void release(@Nullable Runnable releases, int ofClients) {
        try {
            if (releases != null) {
                releases.run();
            }
        } finally {
            if (rescheduler != null) {
                rescheduler.reschedule(ofClients, rescheduled);
            }
        }
    }

    /** Delivers the responses with pending outputs, and waits for the fences, as clients that read the outputs do. */
    private boolean deliverBefore(OutputFences pending) {
        boolean succeeded;
        try {
            deliverPending();
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
            for (BackendRequest request : executed) {
                request.deliverPending();
            }
        } finally {
            observers.close();
            continuations.exit(before);
        }
    }

    /** Waits for fences, while inputs, buffers and outputs stay; returns whether the work of the devices succeeded. */
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

    void checkOpen() {
        if (ended) {
            throw new IllegalStateException("batch: its execution is finished (expected: not yet)");
        }
    }

    /** The handle of a deferred execution. Safe for use by any thread. */
    private final class Deferred implements DeferredExecution {
        @Override
        public void complete() {
            StackReserve.require();
            end(null, scope.model().nanoTime().getAsLong());
        }

        @Override
        public void fail(BackendException error) {
            StackReserve.require();
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
