package dev.nereid.scheduler.batch;

import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.Quoted;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.request.ClientMemory;
import dev.nereid.scheduler.request.FinishedResponse;
import dev.nereid.scheduler.request.ReferenceCountedMemory;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ParameterValue;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;

/**
 * Builds one response from the outputs of a backend. Confined to one thread at a time, and the only user of the memory
 * put in.
 *
 * <p>It ends once: it becomes a {@link FinishedResponse}, or it is discarded. Outputs that the client does not want are
 * kept until then, since the backend may still write to them, and go no further.
 */
final class ResponseBuilder implements InferenceResponse {
    private static final String RESERVED = "triton_";

    /** What backends are promised of the memory that they write, in bytes. */
    private static final long ALIGNMENT = 64;

    /** An output in the shape for the client, and its memory. */
    private record Output(NamedTensor tensor, ReferenceCountedMemory memory) {}

    private final ScheduledRequest request;
    private final ExecutionScope scope;
    private final @Nullable GatheredInputs gathered;
    private final @Nullable BatchOutputs shared;
    private final @Nullable Output[] outputs;
    private @Nullable Map<String, ParameterValue> parameters;
    private boolean ended;

    /**
     * Begins a response.
     *
     * @param request the request that is answered
     * @param gathered the inputs that its batch gathered, in which outputs may lie; {@code null} for a batch of one
     * @param shared the outputs of the whole batch, of which this response gets its part; {@code null} if it gets none
     */
    ResponseBuilder(
            ExecutionScope scope,
            ScheduledRequest request,
            @Nullable GatheredInputs gathered,
            @Nullable BatchOutputs shared) {
        this.request = request;
        this.scope = scope;
        this.gathered = gathered;
        this.shared = shared;
        this.outputs = new @Nullable Output[scope.outputs().size()];
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape) throws BackendException {
        OutputSpec spec = check(output, type, shape);
        MemorySegment target = target(output, OutputChecks.byteSize(scope.model(), spec, type, shape));
        if (target != null) {
            return add(
                    spec,
                    Tensor.of(type, shape, target),
                    ReferenceCountedMemory.of(ResponseBuilder::releaseNothing, null));
        }
        TensorBuffer buffer = OutputChecks.allocate(scope.model(), spec, type, shape);
        scope.outputTracker()
                .recordAllocation(request.checked(), buffer.segment().byteSize());
        return add(spec, Tensor.of(type, shape, buffer.segment()), ReferenceCountedMemory.of(buffer));
    }

    @Override
    public Tensor allocateBytes(String output, Shape shape, long byteSize) throws BackendException {
        OutputSpec spec = check(output, DataType.BYTES, shape);
        OutputChecks.checkBytes(scope.model(), spec, shape, byteSize);
        MemorySegment target = target(output, byteSize);
        if (target != null) {
            return add(
                    spec,
                    Tensor.of(DataType.BYTES, shape, target),
                    ReferenceCountedMemory.of(ResponseBuilder::releaseNothing, null));
        }
        TensorBuffer buffer = OutputChecks.allocateBytes(scope.model(), spec, shape, byteSize);
        scope.outputTracker().recordAllocation(request.checked(), byteSize);
        return add(spec, Tensor.of(DataType.BYTES, shape, buffer.segment()), ReferenceCountedMemory.of(buffer));
    }

    @Override
    public void put(String output, Tensor tensor, Runnable release) throws BackendException {
        ReferenceCountedMemory memory =
                ReferenceCountedMemory.of(release, gathered == null ? null : gathered.retain(tensor));
        OutputSpec spec;
        try {
            spec = check(output, tensor.type(), tensor.shape());
            OutputChecks.checkMemory(scope.model(), spec, tensor.data());
        } catch (BackendException | RuntimeException e) {
            memory.release();
            throw e;
        }
        add(spec, tensor, memory);
    }

    @Override
    public void parameter(String name, ParameterValue value) {
        if (name.startsWith(RESERVED)) {
            throw new IllegalArgumentException("name: " + name + " (expected: not to start with " + RESERVED + ")");
        }
        checkOpen();
        if (parameters == null) {
            parameters = new LinkedHashMap<>();
        }
        parameters.put(name, value);
    }

    @Override
    public void discard() {
        ended = true;
        for (int i = 0; i < outputs.length; i++) {
            Output output = outputs[i];
            if (output != null) {
                outputs[i] = null;
                output.memory().release();
            }
        }
    }

    /** Adds a request's part of an output of the whole batch; takes over the use of the memory, also when it throws. */
    void putPart(OutputSpec output, Tensor tensor, ReferenceCountedMemory memory) throws BackendException {
        add(output, tensor, memory);
    }

    /** Says whether an output was put in. */
    boolean has(OutputSpec output) {
        return outputs[output.index()] != null;
    }

    /** Says whether nothing was put in yet. */
    boolean isEmpty() {
        for (Output output : outputs) {
            if (output != null) {
                return false;
            }
        }
        return true;
    }

    /** Says whether this is a response to a request that can still be sent. */
    boolean isOpenFor(ScheduledRequest candidate) {
        return !ended && request == candidate;
    }

    /**
     * Ends the draft: what the client wants goes into the response, everything else is given back.
     *
     * @throws BackendException if an output cannot be had where the client wants it; everything was given back
     */
    FinishedResponse finish(boolean last) throws BackendException {
        try {
            return finished(last);
        } finally {
            discard();
        }
    }

    private FinishedResponse finished(boolean last) throws BackendException {
        trackOutputs();
        for (int i = 0; i < outputs.length; i++) {
            Output output = outputs[i];
            if (output != null
                    && request.checked().requestsOutput(output.tensor().name())) {
                outputs[i] = placed(output);
            }
        }
        List<NamedTensor> tensors = new ArrayList<>(outputs.length);
        List<ReferenceCountedMemory> memory = new ArrayList<>(outputs.length);
        for (int i = 0; i < outputs.length; i++) {
            Output output = outputs[i];
            if (output != null
                    && request.checked().requestsOutput(output.tensor().name())) {
                tensors.add(output.tensor());
                memory.add(output.memory());
                outputs[i] = null;
            }
        }
        return new FinishedResponse(
                request,
                Collections.unmodifiableList(tensors),
                memory,
                parameters == null ? Map.of() : Collections.unmodifiableMap(parameters),
                last);
    }

    private void trackOutputs() {
        for (int i = 0; i < outputs.length; i++) {
            Output output = outputs[i];
            if (output == null) {
                scope.outputTracker().logMissing(i, request.checked());
            } else {
                scope.outputTracker().checkShape(i, output.tensor().tensor().shape());
            }
        }
    }

    /** Returns memory of the client that the backend may write an output to; {@code null} if there is none. */
    private @Nullable MemorySegment target(String output, long byteSize) throws BackendException {
        MemorySegment target = request.checked().target(output);
        if (target == null) {
            return null;
        }
        OutputChecks.checkTarget(output, target, byteSize);
        boolean fits = scope.clientMemory() && target.address() % ALIGNMENT == 0;
        return fits ? target.asSlice(0, byteSize) : null;
    }

    /**
     * Puts an output where it belongs: into the memory of the client that was given for it, and into no other memory of
     * the client, which nobody else but the backend reads.
     */
    private Output placed(Output output) throws BackendException {
        String name = output.tensor().name();
        Tensor tensor = output.tensor().tensor();
        MemorySegment target = request.checked().target(name);
        if (target == null && !ClientMemory.isClientMemory(tensor.data())) {
            return output;
        }
        if (!tensor.place().isHost()) {
            throw SchedulerErrors.output(
                    scope.model().settings(), name, "lies in " + tensor.place() + " (expected: memory of the host)");
        }
        Output placed;
        if (target == null) {
            TensorBuffer copy = OutputChecks.allocate(scope.model(), tensor.byteSize());
            placed = in(output, copy.segment(), ReferenceCountedMemory.of(copy));
        } else {
            OutputChecks.checkTarget(name, target, tensor.byteSize());
            MemorySegment part = target.asSlice(0, tensor.byteSize());
            placed = in(output, part, ReferenceCountedMemory.of(ResponseBuilder::releaseNothing, null));
        }
        MemorySegment to = placed.tensor().tensor().data();
        try {
            if (to.address() != tensor.data().address()) {
                ClientMemory.copy(tensor.data(), to);
            }
        } catch (InferenceException e) {
            placed.memory().release();
            throw SchedulerErrors.of(e);
        }
        output.memory().release();
        return placed;
    }

    private static Output in(Output output, MemorySegment data, ReferenceCountedMemory memory) {
        Tensor tensor = output.tensor().tensor();
        return new Output(
                new NamedTensor(output.tensor().name(), Tensor.of(tensor.type(), tensor.shape(), data)), memory);
    }

    /** Memory of the client stays the client's. */
    private static void releaseNothing() {}

    private Tensor add(OutputSpec output, Tensor tensor, ReferenceCountedMemory memory) throws BackendException {
        try {
            Tensor seen = OutputChecks.forClient(scope.model(), output, tensor);
            outputs[output.index()] = new Output(new NamedTensor(output.tensor().name(), seen), memory);
            return tensor;
        } catch (BackendException | RuntimeException | Error e) {
            memory.release();
            throw e;
        }
    }

    private OutputSpec check(String output, DataType type, Shape shape) throws BackendException {
        checkOpen();
        OutputSpec spec = scope.output(output);
        if (has(spec) || (shared != null && shared.has(output))) {
            throw SchedulerErrors.duplicateOutput(scope.model().settings(), output);
        }
        OutputChecks.checkType(scope.model(), spec, type);
        if (!scope.model().settings().decoupled()) {
            OutputChecks.checkItems(
                    scope.model(), spec, shape, request.checked().batchSize());
        }
        return spec;
    }

    private void checkOpen() {
        if (ended) {
            throw new IllegalStateException("response to request '"
                    + Quoted.text(request.checked().id()) + "': sent or given up (expected: not yet)");
        }
    }
}
