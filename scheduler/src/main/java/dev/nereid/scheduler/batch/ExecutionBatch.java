package dev.nereid.scheduler.batch;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.request.StateSink;
import dev.nereid.spi.Batch;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.util.Collections;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Set;
import org.jspecify.annotations.Nullable;

/**
 * The batch of one execution, as its backend sees it. Confined to the execution, except for its end: see
 * {@link ExecutionLifecycle}.
 *
 * <p>A batch of one request is the usual case at low load: it does not join or split tensors, inputs and outputs are
 * the request's own.
 */
public final class ExecutionBatch extends ExecutionLifecycle implements Batch {
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
    public ExecutionBatch(
            ExecutionScope scope, List<? extends Executable> begun, @Nullable Rescheduler rescheduler) {
        super(scope, begun, firstOfClients(begun), rescheduler);
        this.sink = firstOfClients(begun).states();
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
        Tensor received;
        try {
            spec = check(outputs, output, tensor.type(), tensor.shape());
            OutputChecks.checkMemory(scope.model(), spec, tensor);
            received = received(tensor, memory);
        } catch (RuntimeException | Error e) {
            memory.release();
            throw e;
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
    private Shape shapeOfSingle(String output, Shape given) {
        return ScatteredParts.ofSingle(scope.model(), scope.outputs().get(output), scheduled, given);
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

    @Override
    boolean mayBePending() {
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

    @Override
    void releaseInputs() {
        if (gathered != null) {
            gathered.release();
        }
    }

    @Override
    void cutStates() {
        if (sink != null) {
            BatchEnds.cutStates(executed, states);
        }
    }

    @Override
    void releaseOutputs(boolean succeeded) {
        if (sink != null) {
            BatchEnds.storeStates(executed, succeeded, states);
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
        public void copyPresent(String output, Tensor to) {
            for (int i = 0; i < executed.length; i++) {
                executed[i].copyPresent(output, to, i, executed.length);
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
}
