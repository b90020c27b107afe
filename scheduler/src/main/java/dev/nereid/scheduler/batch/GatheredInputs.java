package dev.nereid.scheduler.batch;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.scheduler.memory.DeviceCopies;
import dev.nereid.scheduler.memory.MemoryRanges;
import dev.nereid.scheduler.memory.NeighboringTensors;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.memory.StateBuffer;
import dev.nereid.scheduler.request.Executable;
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

    /**
     * A gathered or derived input.
     *
     * @param memory its memory, or references to the requests that own the inputs in which it stays
     * @param owners the requests that must not free their inputs early while an output lies in it
     */
    private record Gathered(String name, Tensor tensor, ReferenceCountedMemory memory, List<ScheduledRequest> owners) {
        /** Adds a reference for an output that lies in it. */
        ReferenceCountedMemory retain(Tensor output) {
            for (ScheduledRequest owner : owners) {
                owner.keepInputsFor(output); // unless it is a copy
            }
            memory.retain();
            return memory;
        }
    }

    /** The number of requests from which on comparing each output with all of their inputs takes too long. */
    private static final int MANY = 16;

    private final ExecutionScope scope;
    private final List<ScheduledRequest> requests;

    /** The requests with their states; empty for a model without states. */
    private final List<? extends Executable> stateful;

    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final List<Gathered> gathered = new ArrayList<>(2);

    /**
     * The addresses of the inputs; {@code null} until they are needed. There are none once the batch released its
     * references, since its requests may be gone then.
     */
    @GuardedBy("lock")
    private @Nullable InputAddresses addresses;

    /** Begins without gathered inputs. {@code stateful} are the requests with states; empty for a model without. */
    GatheredInputs(ExecutionScope scope, List<ScheduledRequest> requests, List<? extends Executable> stateful) {
        this.scope = scope;
        this.requests = requests;
        this.stateful = stateful;
    }

    /**
     * Joins an input along the first dimension, or derives it. Inputs that lie one after the other, such as outputs that
     * an earlier batch of the same requests wrote, stay in place; others are copied together, from wherever they lie.
     * Always returns the same tensor for an input and a place. Confined to the execution.
     *
     * @param place where the tensor is to lie; an input of one request that lies there stays in place
     */
    Tensor gather(String input, MemoryPlace place) {
        Tensor earlier = find(input, place);
        if (earlier != null) {
            return earlier;
        }
        if (place.kind() == MemoryPlace.Kind.PINNED) {
            Tensor onHost = find(input, MemoryPlace.HOST);
            if (onHost != null) {
                return pinned(input, onHost);
            }
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

    private void add(String input, Tensor tensor, ReferenceCountedMemory memory, List<ScheduledRequest> owners) {
        lock.lock();
        try {
            gathered.add(new Gathered(input, tensor, memory, owners));
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns whether a tensor need not be moved to a place. Pinned memory counts as ordinary memory. On a device the
     * tensor has to begin at an address where kernels may read numbers.
     */
    private static boolean liesIn(Tensor tensor, MemoryPlace place) {
        return switch (place.kind()) {
            case HOST -> tensor.place().isHost();
            case PINNED -> tensor.place().kind() == MemoryPlace.Kind.PINNED;
            default -> tensor.place().equals(place) && DeviceCopies.isAligned(tensor.data());
        };
    }

    private Tensor inPlace(String input, Tensor tensor, MemoryPlace place) {
        if (liesIn(tensor, place)) {
            return tensor;
        }
        return place.isHost() && tensor.place().isHost()
                ? pinned(input, tensor)
                : copied(input, tensor.shape(), List.of(tensor), place);
    }

    /** Copies an input on the host to pinned memory; leaves it where it is if none is left. */
    private Tensor pinned(String input, Tensor tensor) {
        Optional<InputMemory> copy = InputMemory.pinned(scope.model(), input, tensor);
        copy.ifPresent(made -> add(input, made.tensor(), made.memory(), List.of()));
        return copy.map(InputMemory::tensor).orElse(tensor);
    }

    /** Returns the input of a batch of one. It stays in place, and is flat if it is ragged. */
    static Tensor single(ModelScope model, ScheduledRequest request, String input) {
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
    private Tensor first(String input, Tensor tensor, MemoryPlace place) {
        if (liesIn(tensor, place)) {
            ScheduledRequest owner = requests.getFirst();
            add(input, tensor, retained(owner, tensor), List.of(owner));
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

    /** Retains the gathered memory that a tensor lies in; {@code null} if it lies elsewhere. */
    @Nullable
    ReferenceCountedMemory retainGathered(Tensor tensor) {
        lock.lock();
        try {
            for (Gathered candidate : gathered) {
                if (MemoryRanges.overlap(candidate.tensor(), tensor)) {
                    return candidate.retain(tensor);
                }
            }
            return null;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Retains the gathered memory, or the request of the batch, in which an output lies. The inputs of that request are
     * kept then.
     *
     * @param own the request of the output, which its response retains anyway; {@code null} for all of the batch
     * @return the reference; {@code null} if the output lies elsewhere, or in an input of its own client
     */
    @Nullable
    ReferenceCountedMemory retain(Tensor output, @Nullable ScheduledRequest own) {
        if (own != null && MemoryRanges.contain(own.inputs(), output) && own.keepInputsFor(output)) {
            return own.retainAdded(output);
        }
        lock.lock();
        try {
            for (Gathered candidate : gathered) {
                if (MemoryRanges.overlap(candidate.tensor(), output)) {
                    return candidate.retain(output);
                }
            }
            if (own != null && own.keepInputsFor(output)) {
                return own.retainAdded(output);
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

    /** Releases the references of the batch, before those to its requests; their inputs are not kept from now on. */
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

    private List<Tensor> parts(String input) {
        List<Tensor> parts = new ArrayList<>(requests.size());
        for (ScheduledRequest request : requests) {
            parts.add(request.input(input));
        }
        return parts;
    }

    /** Derives an input, for all of its names. */
    private Tensor derive(String input, BatchInput derived) {
        String source = derived.source();
        List<Shape> sources = parts(source).stream().map(Tensor::shape).toList();
        boolean batched =
                scope.model().settings().batches() && !is(scope.model(), source, TensorSpec.Trait.SHAPE_TENSOR);
        try {
            InputMemory made = InputMemory.derived(scope.model(), derived, sources, batched);
            Tensor tensor = made.tensor().withName(input);
            add(input, tensor, made.memory(), List.of());
            for (String name : derived.names()) {
                if (!name.equals(input)) {
                    made.memory().retain();
                    add(name, tensor.withName(name), made.memory(), List.of());
                }
            }
            return tensor;
        } catch (ArithmeticException e) {
            throw InputMemory.error(scope.model(), input, ErrorCode.INVALID_ARGUMENT, String.valueOf(e.getMessage()));
        }
    }

    private Tensor join(String input, List<Tensor> parts, MemoryPlace place) {
        Shape shape = joined(scope.model(), input, parts, is(scope.model(), input, TensorSpec.Trait.RAGGED));
        StateSink states = stateOf(input);
        if (states == null) {
            Tensor neighbors = neighbors(input, shape, parts);
            if (neighbors != null) {
                return inPlace(input, neighbors, place);
            }
            Tensor joined = copied(input, shape, parts, place);
            scope.model().meter().inputCopies().incrementAndGet();
            return joined;
        }
        Tensor inOrder = inOrder(input, shape, parts, states);
        if (inOrder != null) {
            return inPlace(input, inOrder, place);
        }
        Tensor joined = copied(input, shape, parts, place);
        states.copied(parts.size() - ofNone().cardinality());
        return joined;
    }

    /** Joins inputs that lie one after the other; {@code null} if they do not. Each request keeps its part. */
    private @Nullable Tensor neighbors(String input, Shape shape, List<Tensor> parts) {
        MemorySegment data = NeighboringTensors.join(parts);
        if (data == null) {
            return null;
        }
        Tensor tensor = Tensor.of(input, parts.getFirst().type(), shape, data, MemoryPlace.HOST);
        List<ReferenceCountedMemory> owned = new ArrayList<>(parts.size());
        for (int i = 0; i < parts.size(); i++) {
            owned.add(retained(requests.get(i), parts.get(i)));
        }
        add(
                input,
                tensor,
                ReferenceCountedMemory.of(() -> owned.forEach(ReferenceCountedMemory::release), null),
                requests);
        return tensor;
    }

    /** Returns the states of a client's request if an input is one of them; {@code null} if it is none. */
    private @Nullable StateSink stateOf(String input) {
        for (Executable request : stateful) {
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
            StateBuffer.InOrder found = inOrder(buffer, parts, none, i);
            if (found != null) {
                counts.copied(found.copied());
                Tensor tensor = Tensor.of(input, parts.getFirst().type(), shape, found.data(), found.place());
                add(input, tensor, retained(requests.get(i), parts.get(i)), List.of(requests.getFirst()));
                return tensor;
            }
        }
        return null;
    }

    private StateBuffer.@Nullable InOrder inOrder(StateBuffer buffer, List<Tensor> parts, BitSet none, int inPlace) {
        try {
            return buffer.inOrder(parts, none, inPlace, scope.model().memory());
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
    }

    /** Copies an input to memory of the server, one part after the other. */
    private Tensor copied(String input, Shape shape, List<Tensor> parts, MemoryPlace place) {
        InputMemory copy = InputMemory.copyOf(scope.model(), input, shape, parts, place);
        add(input, copy.tensor(), copy.memory(), List.of());
        return copy.tensor();
    }

    /**
     * Returns the shape of an input of all requests.
     *
     * @param ragged whether the elements of all requests form one dimension
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if types or further dimensions differ
     */
    private static Shape joined(ModelScope model, String input, List<Tensor> parts, boolean ragged) {
        Tensor first = parts.getFirst();
        long length = 0;
        for (Tensor part : parts) {
            checkJoins(model, input, first, part, ragged);
            Shape shape = part.shape();
            length = Math.addExact(length, ragged ? shape.elementCount() : shape.dim(0));
        }
        return ragged ? Shape.of(length) : first.shape().withFirst(length);
    }

    private static void checkJoins(ModelScope model, String input, Tensor first, Tensor other, boolean ragged) {
        Shape shape = other.shape();
        boolean joins = ragged
                || (shape.rank() > 0 && shape.withFirst(0).equals(first.shape().withFirst(0)));
        if (first.type() != other.type() || !joins) {
            throw InputMemory.error(
                    model,
                    input,
                    ErrorCode.INVALID_ARGUMENT,
                    other.type() + " " + shape + " cannot be joined with " + first.type() + " " + first.shape());
        }
    }
}
