package dev.nereid.scheduler.batch;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.OutputTarget;
import dev.nereid.api.Quoted;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.scheduler.batch.OutputPlacement.Output;
import dev.nereid.scheduler.memory.DeviceCopies;
import dev.nereid.scheduler.memory.MemoryRanges;
import dev.nereid.scheduler.memory.OutputReceiver;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.FinishedResponse;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Fence;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Builds one response from the outputs of a backend. Confined to one thread at a time. Owns the memory of its outputs.
 *
 * <p>It ends once: it becomes a {@link FinishedResponse}, or it is discarded. Outputs that the client did not request
 * are kept until then, since the backend may still write to them, and are dropped. The end of a {@link ResponseStream}
 * also discards its response, perhaps on another thread: an output is added with the lock of the stream.
 */
final class ResponseBuilder implements InferenceResponse {
    private static final ParameterValue TRUE = new ParameterValue.Bool(true);
    private static final ParameterValue FALSE = new ParameterValue.Bool(false);

    /** The alignment that the SPI guarantees for output memory, in bytes. */
    private static final long ALIGNMENT = 64;

    private static final Logger LOG = LoggerFactory.getLogger(ResponseBuilder.class);

    private final ScheduledRequest request;
    private final ExecutionScope scope;
    private final GatheredInputs.Holder inputs;
    private final @Nullable OutputReceiver execution;
    private final @Nullable BatchOutputs shared;
    private final @Nullable Output[] outputs;

    /** The outputs that the configuration does not have, kept until the end: the backend may still write to them. */
    private @Nullable List<Output> dropped;

    private final @Nullable ResponseStream stream;
    private @Nullable Map<String, ParameterValue> parameters;

    /** {@code true} if it was sent or discarded. In a response of a stream, written with the lock of the stream. */
    private boolean ended;

    /** {@code true} if the end of the stream discarded it; written with the lock of the stream. */
    private boolean discardedByEnd;

    /** The thread that used it last; in a response of a stream, written with the lock of the stream. */
    private @Nullable Thread user;

    /** The neighbors among the open responses of the stream, which guards them. */
    @Nullable
    ResponseBuilder previous;

    @Nullable
    ResponseBuilder next;

    /**
     * Creates a response without outputs.
     *
     * @param inputs holds the inputs that its batch gathered, in which outputs may lie
     * @param execution awaits the fences of pending outputs after the response was sent; {@code null} if they are
     *     awaited before
     * @param shared the outputs of the whole batch, which are split among responses; {@code null} for none
     */
    ResponseBuilder(
            ExecutionScope scope,
            ScheduledRequest request,
            GatheredInputs.Holder inputs,
            @Nullable OutputReceiver execution,
            @Nullable BatchOutputs shared) {
        this(scope, request, inputs, execution, shared, null);
    }

    /** Creates a response of a stream, which holds the gathered inputs; the end of the stream discards it. */
    ResponseBuilder(ExecutionScope scope, ScheduledRequest request, ResponseStream stream) {
        this(scope, request, stream, null, null, stream);
    }

    private ResponseBuilder(
            ExecutionScope scope,
            ScheduledRequest request,
            GatheredInputs.Holder inputs,
            @Nullable OutputReceiver execution,
            @Nullable BatchOutputs shared,
            @Nullable ResponseStream stream) {
        this.stream = stream;
        this.user = stream == null ? null : Thread.currentThread();
        this.request = request;
        this.scope = scope;
        this.inputs = inputs;
        this.execution = execution;
        this.shared = shared;
        this.outputs = new @Nullable Output[scope.outputs().size()];
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape) {
        return allocate(output, type, shape, MemoryPlace.HOST);
    }

    @Override
    public Tensor allocate(String output, DataType type, Shape shape, MemoryPlace place) {
        OutputSpec spec = check(output, type, shape);
        long byteSize = OutputChecks.byteSize(scope.model(), spec, type, shape);
        MemorySegment target = target(output, byteSize, place);
        if (target != null) {
            MemoryPlace actual = place.isHost() ? MemoryPlace.HOST : place;
            return add(spec, Tensor.of(type, shape, target, actual), OutputPlacement.clientMemory());
        }
        TensorBuffer buffer = OutputChecks.allocate(scope.model(), spec, type, shape, place);
        scope.outputTracker().recordAllocation(request.checked(), byteSize);
        MemoryPlace actual = place.isHost() ? buffer.place() : place;
        return add(spec, Tensor.of(type, shape, buffer.segment(), actual), ReferenceCountedMemory.of(buffer));
    }

    @Override
    public Tensor allocateBytes(String output, Shape shape, long byteSize) {
        OutputSpec spec = check(output, DataType.BYTES, shape);
        OutputChecks.checkBytes(scope.model(), spec, shape, byteSize);
        MemorySegment target = target(output, byteSize, MemoryPlace.HOST);
        if (target != null) {
            return add(spec, Tensor.of(DataType.BYTES, shape, target), OutputPlacement.clientMemory());
        }
        TensorBuffer buffer = OutputChecks.allocateBytes(scope.model(), spec, shape, byteSize);
        scope.outputTracker().recordAllocation(request.checked(), byteSize);
        return add(spec, Tensor.of(DataType.BYTES, shape, buffer.segment()), ReferenceCountedMemory.of(buffer));
    }

    @Override
    public void put(String output, Tensor tensor, Runnable release) {
        ReferenceCountedMemory memory = ReferenceCountedMemory.of(release, retainInputs(tensor));
        OutputSpec spec;
        Tensor received = null;
        try {
            spec = check(output, tensor.type(), tensor.shape());
            OutputChecks.checkMemory(scope.model(), spec, tensor);
            received = received(tensor, memory);
        } finally {
            if (received == null) {
                memory.release();
            }
        }
        add(spec, received, memory);
    }

    @Override
    public void fence(String output, Fence fence) {
        checkOpen();
        OutputSpec spec = scope.outputs().get(output);
        Output allocated = spec == null ? findDropped(output) : outputs[spec.index()];
        if (allocated == null) {
            throw OutputChecks.notAllocated(scope.model(), output);
        }
        Tensor fenced = received(allocated.content().withFence(fence), allocated.memory());
        Output pending = new Output(new NamedTensor(allocated.name(), fenced), allocated.memory());
        boolean isKept = spec == null ? replaceDropped(allocated, pending) : keep(spec, pending);
        if (!isKept) {
            throw closedError();
        }
    }

    private @Nullable Output findDropped(String output) {
        List<Output> candidates = dropped;
        for (int i = candidates == null ? -1 : candidates.size() - 1; i >= 0; i--) {
            if (requireNonNull(candidates).get(i).name().equals(output)) {
                return candidates.get(i);
            }
        }
        return null;
    }

    private boolean replaceDropped(Output allocated, Output pending) {
        return stream == null ? setDropped(allocated, pending) : stream.whileOpen(() -> setDropped(allocated, pending));
    }

    private boolean setDropped(Output allocated, Output pending) {
        if (ended) {
            return false;
        }
        List<Output> candidates = requireNonNull(dropped);
        candidates.set(candidates.indexOf(allocated), pending);
        return true;
    }

    /** Keeps an output, unless the end of the stream discarded the response; returns whether it did. */
    private boolean keep(OutputSpec spec, Output output) {
        return stream == null ? set(spec, output) : stream.whileOpen(() -> setByThread(spec, output));
    }

    private boolean setByThread(OutputSpec spec, Output output) {
        user = Thread.currentThread();
        return set(spec, output);
    }

    private boolean set(OutputSpec spec, Output output) {
        if (!ended && spec.isKnown()) {
            outputs[spec.index()] = output;
        } else if (!ended) {
            dropped = dropped == null ? new ArrayList<>(1) : dropped;
            dropped.add(output);
        }
        return !ended;
    }

    private Tensor received(Tensor output, ReferenceCountedMemory memory) {
        return execution == null ? scope.isolated(output) : execution.received(output, memory);
    }

    /** Keeps the inputs in which an output lies; returns the reference that the output has to release. */
    private @Nullable ReferenceCountedMemory retainInputs(Tensor output) {
        GatheredInputs gathered = inputs.gathered();
        if (gathered != null) {
            return gathered.retain(output, request);
        }
        return request.keepInputsFor(output) ? request.retainAdded(output) : null;
    }

    @Override
    public void parameter(String name, String value) {
        put(name, new ParameterValue.Text(value));
    }

    @Override
    public void parameter(String name, long value) {
        put(name, new ParameterValue.Int(value));
    }

    @Override
    public void parameter(String name, double value) {
        put(name, new ParameterValue.Real(value));
    }

    @Override
    public void parameter(String name, boolean value) {
        put(name, value ? TRUE : FALSE);
    }

    private void put(String name, ParameterValue value) {
        if (name.startsWith(InferResponse.RESERVED_PREFIX)) {
            throw new IllegalArgumentException(
                    "name: " + name + " (expected: not to start with " + InferResponse.RESERVED_PREFIX + ")");
        }
        checkOpen();
        if (parameters == null) {
            parameters = new LinkedHashMap<>();
        }
        parameters.put(name, value);
    }

    @Override
    public void discard() {
        if (stream == null) {
            end();
        } else if (stream.remove(this)) {
            release();
        }
    }

    /** Ends a response that its stream removed: it was sent or discarded. */
    void end() {
        ended = true;
        release();
    }

    /**
     * Marks the response as ended, unless it is. Called by its stream with its lock.
     *
     * @param byEnd whether the end of the stream discards it
     * @return whether it was open; if so, its caller owns the outputs
     */
    boolean endOnce(boolean byEnd) {
        boolean open = !ended;
        ended = true;
        discardedByEnd |= open && byEnd;
        return open;
    }

    /** Returns whether a thread used the response last. Called with the lock of the stream. */
    boolean isUsedBy(Thread thread) {
        return thread.equals(user);
    }

    /** Returns whether the end of a stream discarded the response. Called with the lock of the stream. */
    boolean isDiscardedByEnd() {
        return discardedByEnd;
    }

    @SuppressWarnings("ReferenceEquality") // Each request has its own stream.
    boolean isOf(ResponseStream candidate) {
        return stream == candidate;
    }

    void release() {
        for (int i = 0; i < outputs.length; i++) {
            Output output = outputs[i];
            if (output != null) {
                outputs[i] = null;
                release(output);
            }
        }
        List<Output> others = dropped;
        if (others != null) {
            dropped = null;
            others.forEach(this::release);
        }
    }

    /**
     * Releases an output that is not sent. If it is pending, its memory is retained until its fence, or else the fence
     * is awaited here.
     */
    private void release(Output output) {
        if (execution == null && output.content().fence().isPresent()) {
            try {
                DeviceCopies.awaitContent(output.content());
            } catch (InferenceException e) {
                LOG.debug("work for an output that is not sent failed", e);
            } finally {
                DeviceCopies.releaseUnlessPending(output.content(), output.memory());
            }
        } else {
            output.memory().release();
        }
    }

    /** Adds a request's part of a whole batch's output. Takes over a memory reference, even if it throws. */
    void putPart(OutputSpec output, Tensor tensor, ReferenceCountedMemory memory) {
        add(output, tensor, memory);
    }

    boolean has(OutputSpec output) {
        return output.isKnown() && outputs[output.index()] != null;
    }

    /** Retains the memory of an output in which a tensor lies; {@code null} if it lies in none. */
    @Nullable
    ReferenceCountedMemory retain(Tensor tensor) {
        for (Output output : outputs) {
            if (output != null && output.contains(tensor)) {
                output.memory().retain();
                return output.memory();
            }
        }
        List<Output> others = dropped == null ? List.of() : dropped;
        for (Output output : others) {
            if (output.contains(tensor)) {
                output.memory().retain();
                return output.memory();
            }
        }
        return null;
    }

    /** Returns whether the request may be completed with pending outputs. */
    boolean mayBePending() {
        for (Output output : outputs) {
            if (output != null && !OutputPlacement.mayBePending(request.checked(), output.name(), output.content())) {
                return false;
            }
        }
        return true;
    }

    /** Returns whether no output was added. */
    boolean isEmpty() {
        for (Output output : outputs) {
            if (output != null) {
                return false;
            }
        }
        return true;
    }

    /**
     * Ends the builder: outputs that the client requested become the response, all others are released.
     *
     * @throws BackendException if an output does not fit its target memory; all outputs are released then
     */
    FinishedResponse finish(boolean last) {
        try {
            return finished(last);
        } finally {
            end();
        }
    }

    private FinishedResponse finished(boolean last) {
        trackOutputs();
        for (int i = 0; i < outputs.length; i++) {
            Output output = outputs[i];
            if (output != null && request.checked().requestsOutput(output.name())) {
                outputs[i] = null; // taken over
                outputs[i] = OutputPlacement.place(
                        scope.model(), request.checked(), output, execution != null && execution.deliversPending());
            }
        }
        List<NamedTensor> tensors = new ArrayList<>(outputs.length);
        List<ReferenceCountedMemory> memory = new ArrayList<>(outputs.length);
        for (int i = 0; i < outputs.length; i++) {
            Output output = outputs[i];
            if (output != null && request.checked().requestsOutput(output.name())) {
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
                last,
                scope.integrity().isDue()
                        ? scope.integrity().begin(tensors, request.checked().id(), request.instance())
                        : null);
    }

    private void trackOutputs() {
        for (int i = 0; i < outputs.length; i++) {
            Output output = outputs[i];
            if (output == null) {
                scope.outputTracker().logMissing(i, request.checked());
            } else {
                scope.outputTracker().checkType(i, output.content().type());
                scope.outputTracker().checkShape(i, output.content().shape());
            }
        }
    }

    /**
     * Returns the client memory to which the backend may write an output directly. It is {@code null} if there is none,
     * or if an input lies in it: the execution reads the input while it writes the output.
     */
    private @Nullable MemorySegment target(String output, long byteSize, MemoryPlace place) {
        OutputTarget target = request.checked().target(output);
        if (target == null) {
            return null;
        }
        MemorySegment memory = target.memory();
        OutputChecks.checkTarget(output, memory, byteSize);
        boolean fits = (place.isHost()
                        ? target.place().isHost() && scope.clientMemory()
                        : target.place().equals(place) && DeviceCopies.isAligned(memory))
                && memory.address() % ALIGNMENT == 0;
        if (!fits) {
            return null;
        }
        MemorySegment slice = memory.asSlice(0, byteSize);
        Tensor written = Tensor.of(DataType.UINT8, Shape.of(byteSize), slice, target.place());
        return MemoryRanges.overlap(request.checked().inputs(), written) ? null : slice;
    }

    private Tensor add(OutputSpec output, Tensor tensor, ReferenceCountedMemory memory) {
        boolean isKept = false;
        try {
            Tensor clientTensor = OutputChecks.forClient(scope.model(), output, tensor);
            isKept = keep(output, new Output(new NamedTensor(output.tensor().name(), clientTensor), memory));
        } finally {
            if (!isKept) {
                memory.release();
            }
        }
        if (!isKept) {
            throw closedError();
        }
        return tensor;
    }

    private OutputSpec check(String output, DataType type, Shape shape) {
        checkOpen();
        OutputSpec spec = scope.output(output, type, shape);
        if (!spec.isKnown()) {
            return spec;
        }
        if (has(spec) || (shared != null && shared.has(output))) {
            throw SchedulerErrors.duplicateOutput(scope.model().settings(), output);
        }
        if (!scope.model().settings().decoupled()) {
            OutputChecks.checkItems(
                    scope.model(), spec, shape, request.checked().batchSize());
        }
        return spec;
    }

    private void checkOpen() {
        if (ended) {
            throw closedError();
        }
    }

    private IllegalStateException closedError() {
        return new IllegalStateException("response to request '"
                + Quoted.text(request.checked().id()) + "': sent or discarded (expected: not yet)");
    }
}
