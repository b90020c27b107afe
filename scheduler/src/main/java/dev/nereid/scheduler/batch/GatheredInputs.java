package dev.nereid.scheduler.batch;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.memory.DeviceCopies;
import dev.nereid.scheduler.memory.MemoryRanges;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.memory.StateBuffer;
import dev.nereid.scheduler.request.ExecutionInputs;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.scheduler.request.StateSink;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Gathers and derives the inputs of a batch. Guarded by its own lock, since any thread may create responses that lie in
 * gathered memory.
 *
 * <p>The batch holds a reference to the memory until its execution is finished; an output that lies in it holds
 * another. So does an output that lies in the inputs of another request of the batch: it keeps that request.
 */
final class GatheredInputs {
    /** Knows the inputs that the current execution of a request gathered. */
    interface Holder {
        /** Returns the inputs, in which outputs may lie; {@code null} for none, in a batch of one. */
        @Nullable
        GatheredInputs gathered();
    }

    /** A gathered or derived input and its memory, or the first request for an input that stays in place. */
    private record Gathered(String name, Tensor tensor, ReferenceCountedMemory memory) {}

    /** The number of requests from which on comparing each output with all of their inputs takes too long. */
    private static final int MANY = 16;

    private final ExecutionScope scope;
    private final List<ScheduledRequest> requests;

    /** The requests with their states; empty for a model without states. */
    private final List<? extends ExecutionInputs> stateful;

    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final List<Gathered> gathered = new ArrayList<>(2);

    /**
     * The addresses of the inputs; {@code null} until they are needed. There are none once the batch released its
     * references, since its requests may be gone then.
     */
    @GuardedBy("lock")
    private @Nullable InputAddresses addresses;

    /**
     * Begins without gathered inputs.
     *
     * @param stateful the requests with their states; empty for a model without states
     */
    GatheredInputs(ExecutionScope scope, List<ScheduledRequest> requests, List<? extends ExecutionInputs> stateful) {
        this.scope = scope;
        this.requests = requests;
        this.stateful = stateful;
    }

    /**
     * Joins an input along the first dimension, or derives it. The join takes one copy for each request, from wherever
     * its input lies. Always returns the same tensor for an input and a place. Confined to the execution.
     *
     * @param place where the tensor is to lie; an input of one request that lies there stays in place
     */
    Tensor gather(String input, MemoryPlace place) throws BackendException {
        Tensor earlier = find(input, place);
        if (earlier != null) {
            return earlier;
        }
        BatchInput derived = scope.derived().find(input);
        if (derived != null) {
            return place.isHost() ? derive(input, derived) : inPlace(input, gather(input, MemoryPlace.HOST), place);
        }
        if (requests.size() == 1) {
            return inPlace(input, single(scope.model(), requests.getFirst(), input), place);
        }
        List<Tensor> parts = parts(input);
        return is(scope.model(), input, TensorSpec.Trait.SHAPE_TENSOR)
                ? first(input, parts.getFirst(), place) // equal in all requests of a batch
                : join(input, parts, place);
    }

    private @Nullable Tensor find(String input, MemoryPlace place) {
        lock.lock();
        try {
            for (Gathered earlier : gathered) {
                if (earlier.name().equals(input) && liesIn(earlier.tensor(), place)) {
                    return earlier.tensor();
                }
            }
            return null;
        } finally {
            lock.unlock();
        }
    }

    private void add(String input, Tensor tensor, ReferenceCountedMemory memory) {
        lock.lock();
        try {
            gathered.add(new Gathered(input, tensor, memory));
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether a tensor need not be moved to a place. Any memory of the host will do for one of the host. */
    private static boolean liesIn(Tensor tensor, MemoryPlace place) {
        return place.isHost() ? tensor.place().isHost() : tensor.place().equals(place);
    }

    private Tensor inPlace(String input, Tensor tensor, MemoryPlace place) throws BackendException {
        return liesIn(tensor, place) ? tensor : copied(input, tensor.shape(), List.of(tensor), place);
    }

    /** Returns the input of a batch of one. It stays in place, and is flat if it is ragged. */
    static Tensor single(ModelScope model, ScheduledRequest request, String input) throws BackendException {
        Tensor tensor = request.input(input);
        if (!is(model, input, TensorSpec.Trait.RAGGED)) {
            return tensor;
        }
        return tensor.withShape(Shape.of(tensor.shape().elementCount()));
    }

    private static boolean is(ModelScope model, String input, TensorSpec.Trait trait) {
        Optional<TensorSpec> spec = model.settings().input(input);
        return spec.isPresent() && spec.get().is(trait);
    }

    /** Returns an input of the first request, and keeps it if it stays in place. */
    private Tensor first(String input, Tensor tensor, MemoryPlace place) throws BackendException {
        if (liesIn(tensor, place)) {
            add(input, tensor, retained(requests.getFirst(), tensor));
        }
        return inPlace(input, tensor, place);
    }

    /** Retains a request and its inputs, and the memory of the added input in which a tensor lies. */
    private static ReferenceCountedMemory retained(ScheduledRequest owner, Tensor tensor) {
        owner.retain();
        return ReferenceCountedMemory.of(owner::release, owner.retainAdded(tensor));
    }

    /** Returns whether a tensor lies in an input of a request of the batch. */
    boolean isInput(Tensor tensor) {
        for (ScheduledRequest request : requests) {
            if (MemoryRanges.overlap(request.inputs(), tensor)) {
                return true;
            }
        }
        return false;
    }

    /** Retains the gathered memory that a tensor lies in, which is no input of a request; {@code null} if elsewhere. */
    @Nullable
    ReferenceCountedMemory retainGathered(Tensor tensor) {
        lock.lock();
        try {
            for (Gathered candidate : gathered) {
                if (MemoryRanges.overlap(candidate.tensor(), tensor)) {
                    candidate.memory().retain();
                    return candidate.memory();
                }
            }
            return null;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Retains the gathered memory, or the request of the batch, that an output lies in. Its inputs are kept then.
     *
     * @param own the request of the output, whose response retains it anyway; {@code null} for all of the batch
     * @return what was retained; {@code null} if the output lies elsewhere, or in an input of its own client
     */
    @Nullable
    ReferenceCountedMemory retain(Tensor output, @Nullable ScheduledRequest own) {
        if (own != null && own.keepInputsFor(output)) {
            return own.retainAdded(output);
        }
        lock.lock();
        try {
            for (Gathered candidate : gathered) {
                if (MemoryRanges.overlap(candidate.tensor(), output)) {
                    requests.getFirst().keepInputsFor(output); // unless the candidate is a copy
                    candidate.memory().retain();
                    return candidate.memory();
                }
            }
            return mayLieInInputs(output, own) ? retainOwner(output) : null;
        } finally {
            lock.unlock();
        }
    }

    /** Returns {@code false} if an output lies in no input of the batch, or if the batch released its references. */
    @GuardedBy("lock")
    private boolean mayLieInInputs(Tensor output, @Nullable ScheduledRequest own) {
        if (addresses == InputAddresses.NONE) {
            return false;
        }
        if (own == null || requests.size() < MANY) {
            return own == null || requests.size() > 1;
        }
        if (addresses == null) {
            addresses = InputAddresses.of(requests);
        }
        return addresses.mayContain(output);
    }

    private @Nullable ReferenceCountedMemory retainOwner(Tensor output) {
        for (int i = 0; i < requests.size(); i++) {
            if (requests.get(i).keepInputsFor(output)) {
                return retained(requests.get(i), output);
            }
        }
        return null;
    }

    /**
     * Releases the references of the batch. Called before those to its requests are released: from now on their inputs
     * are not kept any more.
     */
    void release() {
        List<Gathered> all;
        lock.lock();
        try {
            addresses = InputAddresses.NONE;
            all = List.copyOf(gathered);
            gathered.clear();
        } finally {
            lock.unlock();
        }
        all.forEach(input -> input.memory().release());
    }

    private List<Tensor> parts(String input) throws BackendException {
        List<Tensor> parts = new ArrayList<>(requests.size());
        for (ScheduledRequest request : requests) {
            parts.add(request.input(input));
        }
        return parts;
    }

    /** Derives an input, for all of its names. */
    private Tensor derive(String input, BatchInput derived) throws BackendException {
        String source = derived.source();
        List<Shape> sources = parts(source).stream().map(Tensor::shape).toList();
        boolean batched =
                scope.model().settings().batches() && !is(scope.model(), source, TensorSpec.Trait.SHAPE_TENSOR);
        try {
            Shape shape = DerivedInputs.shape(derived.kind(), sources, batched);
            TensorBuffer buffer = OutputChecks.allocateZeroed(scope.model(), shape.byteSize(derived.type()));
            ReferenceCountedMemory memory = ReferenceCountedMemory.of(buffer);
            Tensor tensor;
            try {
                DerivedInputs.write(derived.kind(), derived.type(), sources, batched, buffer.segment());
                tensor = Tensor.of(derived.type(), shape, buffer.segment());
            } catch (RuntimeException | Error e) {
                memory.release();
                throw e;
            }
            add(input, tensor, memory);
            for (String name : derived.names()) {
                if (!name.equals(input)) {
                    memory.retain();
                    add(name, tensor, memory);
                }
            }
            return tensor;
        } catch (ArithmeticException e) {
            throw error(input, ErrorCode.INVALID_ARGUMENT, String.valueOf(e.getMessage()));
        }
    }

    private Tensor join(String input, List<Tensor> parts, MemoryPlace place) throws BackendException {
        Tensor first = parts.getFirst();
        boolean ragged = is(scope.model(), input, TensorSpec.Trait.RAGGED);
        long length = 0;
        for (Tensor part : parts) {
            checkJoins(input, first, part, ragged);
            Shape shape = part.shape();
            length = Math.addExact(length, ragged ? shape.elementCount() : shape.dim(0));
        }
        Shape shape = ragged ? Shape.of(length) : first.shape().withFirst(length);
        StateSink states = stateOf(input);
        if (states == null) {
            return copied(input, shape, parts, place);
        }
        Tensor inOrder = inOrder(input, shape, parts, states);
        if (inOrder != null) {
            return inPlace(input, inOrder, place);
        }
        Tensor joined = copied(input, shape, parts, place);
        states.copied(parts.size() - ofNone().cardinality());
        return joined;
    }

    /** Returns the states of a client's request if an input is one of them; {@code null} if it is none. */
    private @Nullable StateSink stateOf(String input) {
        for (ExecutionInputs request : stateful) {
            StateSink states = request.states();
            if (states != null && !request.isNull()) {
                return states.isState(input) ? states : null;
            }
        }
        return null;
    }

    private BitSet ofNone() {
        BitSet none = new BitSet(stateful.size());
        for (int i = 0; i < stateful.size(); i++) {
            none.set(i, stateful.get(i).isNull());
        }
        return none;
    }

    /** Finds present states where an earlier batch wrote them in this order; {@code null} if they do not lie so. */
    private @Nullable Tensor inOrder(String input, Shape shape, List<Tensor> parts, StateSink counts) {
        BitSet none = ofNone();
        StateBuffer tried = null;
        for (int i = none.nextClearBit(0); i < parts.size(); i = none.nextClearBit(i + 1)) {
            StateSink states = stateful.get(i).states();
            StateBuffer buffer = states == null ? null : states.buffer(input);
            if (buffer == null || buffer == tried) {
                continue;
            }
            tried = buffer;
            StateBuffer.InOrder found = buffer.inOrder(parts, none, i);
            if (found != null) {
                counts.copied(found.copied());
                Tensor tensor = Tensor.of(parts.getFirst().type(), shape, found.data());
                add(input, tensor, retained(requests.get(i), parts.get(i)));
                return tensor;
            }
        }
        return null;
    }

    /** Copies an input to memory of the server, one part after the other. */
    private Tensor copied(String input, Shape shape, List<Tensor> parts, MemoryPlace place) throws BackendException {
        long byteSize = 0;
        for (Tensor part : parts) {
            byteSize = Math.addExact(byteSize, part.byteSize());
        }
        DeviceMemory device = place.isHost() ? null : device(input, place, "no memory in ");
        for (Tensor part : parts) {
            if (!part.place().isHost()) {
                device(input, part.place(), "lies in ");
            }
        }
        try {
            TensorBuffer buffer = scope.model().memory().allocate(byteSize, place);
            try {
                long at = 0;
                for (Tensor part : parts) {
                    copy(part, device, buffer.segment(), at);
                    at += part.byteSize();
                }
            } catch (RuntimeException | Error e) {
                buffer.close();
                throw e;
            }
            MemoryPlace actual = device == null ? MemoryPlace.HOST : place;
            Tensor copied = Tensor.of(parts.getFirst().type(), shape, buffer.segment(), actual);
            add(input, copied, ReferenceCountedMemory.of(buffer));
            return copied;
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
    }

    /** Copies a part to memory of the server, on a device or, if that is {@code null}, on the host. */
    private void copy(Tensor part, @Nullable DeviceMemory device, MemorySegment to, long at) {
        TensorMemory memory = scope.model().memory();
        if (device != null) {
            DeviceCopies.toDevice(part, device, to.asSlice(at, part.byteSize()), memory);
        } else if (part.place().isHost()) {
            MemorySegment.copy(part.data(), 0, to, at, part.byteSize());
        } else {
            DeviceMemory source = memory.device(part.place()).orElseThrow();
            DeviceCopies.toHost(part, source, to.asSlice(at, part.byteSize()));
        }
    }

    private DeviceMemory device(String input, MemoryPlace place, String problem) throws BackendException {
        Optional<DeviceMemory> device = scope.model().memory().device(place);
        if (device.isEmpty()) {
            throw error(input, ErrorCode.UNSUPPORTED, problem + place + " (expected: memory of the host)");
        }
        return device.get();
    }

    private void checkJoins(String input, Tensor first, Tensor other, boolean ragged) throws BackendException {
        Shape shape = other.shape();
        boolean joins = ragged
                || (shape.rank() > 0 && shape.withFirst(0).equals(first.shape().withFirst(0)));
        if (first.type() != other.type() || !joins) {
            throw error(
                    input,
                    ErrorCode.INVALID_ARGUMENT,
                    other.type() + " " + shape + " cannot be joined with " + first.type() + " " + first.shape());
        }
    }

    private BackendException error(String input, ErrorCode code, String problem) {
        return new BackendException(
                code,
                "input '" + input + "' of model '" + scope.model().settings().name() + "': " + problem);
    }
}
