package dev.nereid.scheduler.batch;

import dev.nereid.api.NamedTensor;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.request.ObserverScope;
import dev.nereid.scheduler.request.ReferenceCountedMemory;
import dev.nereid.scheduler.request.ResponseEvent;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.statistics.ExecutionTally;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.DeferredExecution;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The batch of one execution, as its backend sees it. Confined to the execution, except for its end: finish and failure
 * of a deferred execution race for one compare-and-set, and the thread that takes it completes the remaining requests
 * and releases the memory of the batch. Without a deferral the instance's worker ends the batch after the return of its
 * backend.
 *
 * <p>A batch of one request is the usual case at low load: it does not join or split tensors, inputs and outputs are
 * the request's own.
 */
public final class ExecutionBatch implements Batch {
    private final ExecutionScope scope;
    private final ExecutedRequest[] executed;

    /** The content of {@link #executed}, for the backend. */
    private final List<InferenceRequest> requests;

    private final List<ScheduledRequest> scheduled;
    private final ScheduledRequest first;
    private final int size;
    private final @Nullable GatheredInputs gathered;
    private final @Nullable BatchOutputs outputs;
    private final AtomicBoolean ended = new AtomicBoolean();

    /** The action after a deferred execution; {@link #nothing} after its end. */
    private final AtomicReference<@Nullable Runnable> afterwards = new AtomicReference<>();

    private boolean deferred;

    /** The thread that executes the batch; written before other threads see the batch. */
    private @Nullable Thread thread;

    /** Written once; the watchdog may see it late. */
    private long startNanos;

    private boolean started;
    private long inputsNanos;
    private long outputsNanos;
    private boolean inputsMarked;
    private boolean outputsMarked;

    /** Creates a batch of begun requests; takes over the queue's reference to each. */
    public ExecutionBatch(ExecutionScope scope, List<ScheduledRequest> begun) {
        this.scope = scope;
        this.first = begun.getFirst();
        this.executed = new ExecutedRequest[begun.size()];
        if (executed.length == 1) {
            scheduled = List.of(first);
            boolean inPlace =
                    scope.derived().isEmpty() && first.checked().inputs().areOnHost();
            gathered = inPlace ? null : new GatheredInputs(scope, scheduled);
            outputs = null;
            size = first.checked().batchSize();
            executed[0] = new ExecutedRequest(scope, first, gathered, null);
        } else {
            scheduled = List.copyOf(begun);
            int items = 0;
            for (ScheduledRequest request : scheduled) {
                items += request.checked().batchSize();
            }
            size = items;
            gathered = new GatheredInputs(scope, scheduled);
            outputs = new BatchOutputs(scope, scheduled, size);
            for (int i = 0; i < executed.length; i++) {
                executed[i] = new ExecutedRequest(scope, scheduled.get(i), gathered, outputs);
            }
        }
        requests = List.of(executed);
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
        for (ExecutedRequest request : executed) {
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
    public Tensor gather(String input) throws BackendException {
        checkOpen();
        return gathered == null ? GatheredInputs.single(scope.model(), first, input) : gathered.gather(input);
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape) throws BackendException {
        checkOpen();
        if (outputs == null) {
            Shape part = shapeOfSingle(output, shape);
            return in(shape, part, executed[0].builder().allocate(output, type, part));
        }
        OutputSpec spec = check(outputs, output, type, shape);
        TensorBuffer buffer = OutputChecks.allocate(scope.model(), spec, type, shape);
        Tensor tensor = Tensor.of(type, shape, buffer.segment());
        outputs.add(spec, tensor, ReferenceCountedMemory.of(buffer));
        return tensor;
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape, MemoryPlace place) throws BackendException {
        if (place.isHost()) {
            return allocate(output, type, shape);
        }
        checkOpen();
        if (outputs == null) {
            Shape part = shapeOfSingle(output, shape);
            return in(shape, part, executed[0].builder().allocate(output, type, part, place));
        }
        OutputSpec spec = check(outputs, output, type, shape);
        TensorBuffer buffer = OutputChecks.allocate(scope.model(), spec, type, shape, place);
        Tensor tensor = Tensor.of(type, shape, buffer.segment(), place);
        outputs.add(spec, tensor, ReferenceCountedMemory.of(buffer));
        return tensor;
    }

    @Override
    public Tensor allocateBytes(String output, Shape shape, long byteSize) throws BackendException {
        checkOpen();
        if (outputs == null) {
            Shape part = shapeOfSingle(output, shape);
            return in(shape, part, executed[0].builder().allocateBytes(output, part, byteSize));
        }
        OutputSpec spec = check(outputs, output, DataType.BYTES, shape);
        TensorBuffer buffer = OutputChecks.allocateBytes(scope.model(), spec, shape, byteSize);
        Tensor tensor = Tensor.of(DataType.BYTES, shape, buffer.segment());
        outputs.add(spec, tensor, ReferenceCountedMemory.of(buffer));
        return tensor;
    }

    @Override
    public void scatter(String output, Tensor tensor, Runnable release) throws BackendException {
        if (ended.get()) {
            ReferenceCountedMemory.of(release, null).release();
            checkOpen();
        }
        if (outputs == null || gathered == null) {
            scatterToSingle(output, tensor, release);
            return;
        }
        ReferenceCountedMemory memory = ReferenceCountedMemory.of(release, gathered.retain(tensor, null));
        OutputSpec spec;
        try {
            spec = check(outputs, output, tensor.type(), tensor.shape());
            OutputChecks.checkMemory(scope.model(), spec, tensor);
        } catch (BackendException | RuntimeException e) {
            memory.release();
            throw e;
        }
        outputs.add(spec, tensor, memory);
    }

    private void scatterToSingle(String output, Tensor tensor, Runnable release) throws BackendException {
        Shape shape;
        try {
            shape = shapeOfSingle(output, tensor.shape());
        } catch (BackendException | RuntimeException e) {
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
    private Shape shapeOfSingle(String output, Shape given) throws BackendException {
        OutputSpec spec = scope.outputs().get(output);
        String source = spec == null ? null : spec.source();
        if (spec == null || source == null) {
            return given;
        }
        ScatteredParts.check(scope.model(), spec, source, scheduled, given);
        return ScatteredParts.shape(scope.model(), spec, source, first);
    }

    private OutputSpec check(BatchOutputs all, String output, DataType type, Shape shape) throws BackendException {
        OutputSpec spec = all.check(output, type, shape);
        for (ExecutedRequest request : executed) {
            if (request.has(spec)) {
                throw SchedulerErrors.duplicateOutput(scope.model().settings(), output);
            }
        }
        return spec;
    }

    @Override
    public DeferredExecution defer() {
        checkOpen();
        if (deferred) {
            throw new IllegalStateException("defer: called twice (expected: once)");
        }
        deferred = true;
        scheduled.forEach(ScheduledRequest::detach);
        return new Deferred();
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

    /** Records the start of the execution; called before the backend. */
    public void started(long nanos) {
        startNanos = nanos;
        started = true;
        for (int i = 0; i < scheduled.size(); i++) {
            scheduled.get(i).started(nanos);
        }
    }

    /** Records the thread that executes the batch. Called before another thread sees the batch. */
    public void executedBy(Thread executing) {
        thread = executing;
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

    /** Returns when the execution started. */
    public long startNanos() {
        return startNanos;
    }

    /** Returns the ids of the requests. */
    public List<String> requestIds() {
        return scheduled.stream().map(request -> request.checked().id()).toList();
    }

    /** Ends the execution after a return of the backend, unless the backend deferred it. */
    public void returned(long nowNanos) {
        if (!deferred) {
            end(null, nowNanos);
        }
    }

    /**
     * Completes the remaining requests after an error of the backend. Ends the execution unless the backend deferred
     * it.
     */
    public void threw(ResponseEvent.Failure failure, long nowNanos) {
        if (!deferred) {
            end(failure, nowNanos);
            return;
        }
        for (ExecutedRequest request : executed) {
            request.failUnlessStreaming(failure);
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
     * Runs an action once, when the execution has ended. It runs now, or on the thread that ends it. Called after the
     * backend.
     */
    public void onEnd(Runnable action) {
        if (!deferred || !afterwards.compareAndSet(null, action)) {
            action.run();
        }
    }

    /** Settles all requests, counts them together with the execution, and only then calls their observers. */
    private void end(ResponseEvent.@Nullable Failure failure, long nowNanos) {
        if (!ended.compareAndSet(false, true)) {
            return;
        }
        try {
            endOnce(failure, nowNanos);
        } finally {
            Runnable action = deferred ? afterwards.getAndSet(ExecutionBatch::nothing) : null;
            if (action != null) {
                action.run();
            }
        }
    }

    private void endOnce(ResponseEvent.@Nullable Failure failure, long nowNanos) {
        ExecutionTally tally = new ExecutionTally(
                startNanos, inputsMarked ? inputsNanos : startNanos, outputsMarked ? outputsNanos : nowNanos, nowNanos);
        if (failure == null) {
            tally.executed(size);
        }
        int firstItem = 0;
        for (int i = 0; i < executed.length; i++) {
            executed[i].settle(failure, i, firstItem, tally);
            firstItem += scheduled.get(i).checked().batchSize();
        }
        scope.model().meter().record(tally);
        if (gathered != null) {
            gathered.release();
        }
        ObserverScope scope = ObserverScope.current();
        scope.open(); // requests that follow from this batch are queued together
        try {
            for (ExecutedRequest request : executed) {
                request.finish();
            }
        } finally {
            scope.close();
        }
        if (outputs != null) {
            outputs.release();
        }
    }

    private static void nothing() {}

    private void checkOpen() {
        if (ended.get()) {
            throw new IllegalStateException("batch: its execution is finished (expected: not yet)");
        }
    }

    /** The handle of a deferred execution. Safe for use by any thread. */
    private final class Deferred implements DeferredExecution {
        @Override
        public void finish() {
            end(null, scope.model().nanoTime().getAsLong());
        }

        @Override
        public void fail(BackendException error) {
            end(
                    ResponseEvent.Failure.of(error, FailureReason.BACKEND),
                    scope.model().nanoTime().getAsLong());
        }
    }
}
