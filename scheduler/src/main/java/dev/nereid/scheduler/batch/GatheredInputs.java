package dev.nereid.scheduler.batch;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.request.DeviceCopies;
import dev.nereid.scheduler.request.MemoryRanges;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.ReferenceCountedMemory;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
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
    /** A gathered or derived input and its memory, or the first request for an input that stays in place. */
    private record Gathered(String name, Tensor tensor, ReferenceCountedMemory memory) {}

    /** The number of requests from which on comparing each output with all of their inputs takes too long. */
    private static final int MANY = 16;

    private final ExecutionScope scope;
    private final List<ScheduledRequest> requests;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final List<Gathered> gathered = new ArrayList<>(2);

    /**
     * The addresses of the inputs; {@code null} until they are needed. There are none once the batch released its
     * references, since its requests may be gone then.
     */
    @GuardedBy("lock")
    private @Nullable InputAddresses addresses;

    GatheredInputs(ExecutionScope scope, List<ScheduledRequest> requests) {
        this.scope = scope;
        this.requests = requests;
    }

    /**
     * Joins an input along the first dimension, or derives it. The join takes one copy for each request. Always returns
     * the same tensor for an input.
     */
    Tensor gather(String input) throws BackendException {
        lock.lock();
        try {
            for (Gathered earlier : gathered) {
                if (earlier.name().equals(input)) {
                    return earlier.tensor();
                }
            }
            BatchInput derived = scope.derived().find(input);
            if (derived != null) {
                return derive(input, derived);
            }
            if (requests.size() == 1) {
                Tensor own = single(scope.model(), requests.getFirst(), input);
                return own.place().isHost() ? own : copied(input, own.shape(), List.of(own));
            }
            List<Tensor> parts = parts(input);
            return is(scope.model(), input, TensorSpec.Trait.SHAPE_TENSOR)
                    ? first(input, parts.getFirst()) // equal in all requests of a batch
                    : join(input, parts);
        } finally {
            lock.unlock();
        }
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

    /** Returns an input of the first request, which stays in place if it lies on the host. */
    @GuardedBy("lock")
    private Tensor first(String input, Tensor tensor) throws BackendException {
        if (!tensor.place().isHost()) {
            return copied(input, tensor.shape(), List.of(tensor));
        }
        ScheduledRequest owner = requests.getFirst();
        gathered.add(new Gathered(input, tensor, retained(owner)));
        return tensor;
    }

    private static ReferenceCountedMemory retained(ScheduledRequest owner) {
        owner.retain();
        return ReferenceCountedMemory.of(owner::release, null);
    }

    /**
     * Retains the gathered memory, or the request of the batch, that an output lies in. Its inputs are kept then.
     *
     * @param own the request of the output, whose response retains it anyway; {@code null} for all of the batch
     * @return what was retained; {@code null} if the output lies elsewhere
     */
    @Nullable
    ReferenceCountedMemory retain(Tensor output, @Nullable ScheduledRequest own) {
        if (own != null && own.keepInputsFor(output)) {
            return null;
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
                return retained(requests.get(i));
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
    @GuardedBy("lock")
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
            gathered.add(new Gathered(input, tensor, memory));
            for (String name : derived.names()) {
                if (!name.equals(input)) {
                    memory.retain();
                    gathered.add(new Gathered(name, tensor, memory));
                }
            }
            return tensor;
        } catch (ArithmeticException e) {
            throw error(input, ErrorCode.INVALID_ARGUMENT, String.valueOf(e.getMessage()));
        }
    }

    @GuardedBy("lock")
    private Tensor join(String input, List<Tensor> parts) throws BackendException {
        Tensor first = parts.getFirst();
        boolean ragged = is(scope.model(), input, TensorSpec.Trait.RAGGED);
        long length = 0;
        for (Tensor part : parts) {
            checkJoins(input, first, part, ragged);
            Shape shape = part.shape();
            length = Math.addExact(length, ragged ? shape.elementCount() : shape.dim(0));
        }
        return copied(input, ragged ? Shape.of(length) : first.shape().withFirst(length), parts);
    }

    /** Copies an input to memory of the host, one part after the other. */
    @GuardedBy("lock")
    private Tensor copied(String input, Shape shape, List<Tensor> parts) throws BackendException {
        long byteSize = 0;
        for (Tensor part : parts) {
            byteSize = Math.addExact(byteSize, part.byteSize());
        }
        TensorBuffer buffer = OutputChecks.allocate(scope.model(), byteSize);
        try {
            long at = 0;
            for (Tensor part : parts) {
                copy(input, part, buffer.segment(), at);
                at += part.byteSize();
            }
        } catch (BackendException | RuntimeException | Error e) {
            buffer.close();
            throw e;
        }
        Tensor copied = Tensor.of(parts.getFirst().type(), shape, buffer.segment());
        gathered.add(new Gathered(input, copied, ReferenceCountedMemory.of(buffer)));
        return copied;
    }

    private void copy(String input, Tensor part, MemorySegment to, long at) throws BackendException {
        if (part.place().isHost()) {
            MemorySegment.copy(part.data(), 0, to, at, part.byteSize());
            return;
        }
        Optional<DeviceMemory> device = scope.model().memory().device(part.place());
        if (device.isEmpty()) {
            throw error(input, ErrorCode.UNSUPPORTED, "lies in " + part.place() + " (expected: ordinary memory)");
        }
        try {
            DeviceCopies.toHost(part, device.get(), to.asSlice(at, part.byteSize()));
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
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
