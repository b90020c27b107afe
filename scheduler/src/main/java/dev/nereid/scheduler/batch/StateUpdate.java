package dev.nereid.scheduler.batch;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.scheduler.memory.ByteStrings;
import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.scheduler.memory.DeviceCopies;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.memory.StateBuffer;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Fence;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.SequenceState;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.BitSet;
import java.util.Optional;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** An update of one state, of a request or of the whole batch. Confined to the execution; owns its memory. */
final class StateUpdate implements SequenceState {
    /** Knows the memory of an execution. */
    interface Owner {
        /** Returns whether a tensor lies in an input of a request: it is gone when the request is. */
        boolean isInput(Tensor tensor);

        /** Retains the gathered input or the output in which a tensor lies; {@code null} for memory of the backend. */
        @Nullable
        ReferenceCountedMemory retain(Tensor tensor);

        /** Copies the present values of a state with one buffer for both to the beginning of each item of a new one. */
        void copyPresent(String output, Tensor target);

        /** Returns a value as the server reads it: if pending, its fence is awaited before its memory is freed. */
        Tensor received(Tensor value, ReferenceCountedMemory memory);

        /** Counts an update that was copied, since it lies in memory that is gone before the next execution. */
        void copied(String output);

        /** Returns whether a state is written the other way: for the whole batch, or for one of its requests. */
        boolean isWrittenElsewhere(String output);
    }

    private static final Logger LOG = LoggerFactory.getLogger(StateUpdate.class);

    private final ModelScope model;
    private final StateSpec spec;
    private final int items;
    private final Owner owner;
    private @Nullable Tensor value;
    private @Nullable ReferenceCountedMemory memory;
    private boolean ended;

    /** {@code true} if the value lies in memory that this class allocated. */
    private boolean allocated;

    /** The value as the buffer of a batch; {@code null} before {@link #written}, and for a value of one request. */
    private @Nullable StateBuffer buffer;

    /** Creates a state without an update. {@code items} is the first dimension of its value if the model batches. */
    StateUpdate(ModelScope model, StateSpec spec, int items, Owner owner) {
        this.model = model;
        this.spec = spec;
        this.items = items;
        this.owner = owner;
    }

    String output() {
        return spec.outputName();
    }

    /** Returns the value; {@code null} if there is none. */
    @Nullable
    Tensor value() {
        return value;
    }

    /** Returns the reference that keeps the value alive. Called only if there is a value. */
    ReferenceCountedMemory memory() {
        return requireNonNull(memory);
    }

    /**
     * Ends the writing of a value of a whole batch. Called only if there is one. Rows of memory that was allocated here
     * are used again if no client has them.
     *
     * @param unused the items of null requests
     */
    void written(BitSet unused) {
        Tensor whole = requireNonNull(value);
        if (!model.settings().batches() || items <= 1) {
            return;
        }
        BitSet spare = new BitSet();
        if (allocated && whole.type().isFixedSize()) {
            long itemSize = whole.byteSize() / items;
            for (int item = unused.nextSetBit(0); item >= 0; item = unused.nextSetBit(item + 1)) {
                if (isCleared(whole.data().asSlice(item * itemSize, itemSize), whole.place())) {
                    spare.set(item);
                }
            }
        }
        buffer = new StateBuffer(whole, items, spare);
    }

    private boolean isCleared(MemorySegment data, MemoryPlace place) {
        if (place.isHost()) {
            data.fill((byte) 0);
            return true;
        }
        try {
            model.memory().device(place).orElseThrow().clear(data);
            return true;
        } catch (InferenceException e) { // the device failed: the row is not used again
            LOG.debug("row of a state not cleared", e);
            return false;
        }
    }

    /** Returns the place of an item in the buffer of the batch; {@code null} for none. */
    StateBuffer.@Nullable Row row(int item) {
        return buffer == null ? null : new StateBuffer.Row(buffer, item);
    }

    /** Ends the use by the backend, and releases the value. */
    void end() {
        ended = true;
        value = null;
        if (memory != null) {
            memory.release();
            memory = null;
        }
    }

    @Override
    public Tensor allocate(DataType type, Shape shape) {
        check(type, shape);
        return allocated(type, shape, OutputChecks.allocateZeroed(model, byteSize(type, shape)));
    }

    private long byteSize(DataType type, Shape shape) {
        if (!type.isFixedSize()) {
            throw error("type " + type + " (expected: a type of fixed size)");
        }
        try {
            return shape.byteSize(type);
        } catch (ArithmeticException e) {
            throw error("shape " + shape + " (expected: a size that fits 64 bits)");
        }
    }

    @Override
    public Tensor allocate(DataType type, Shape shape, MemoryPlace place) {
        if (place.isHost()) {
            return allocate(type, shape);
        }
        check(type, shape);
        return allocated(type, shape, OutputChecks.allocate(device(place), byteSize(type, shape)));
    }

    private DeviceMemory device(MemoryPlace place) {
        Optional<DeviceMemory> device = model.memory().device(place);
        if (device.isEmpty()) {
            throw new BackendException(
                    ErrorCode.UNSUPPORTED,
                    "state '" + spec.outputName() + "' of model '"
                            + model.settings().name() + "': no memory in " + place + " (expected: memory of the host)");
        }
        return device.get();
    }

    @Override
    public Tensor allocateBytes(Shape shape, long byteSize) {
        check(DataType.BYTES, shape);
        if (byteSize < 0) {
            throw error("size " + byteSize + " (expected: >= 0)");
        }
        return allocated(DataType.BYTES, shape, OutputChecks.allocateZeroed(model, byteSize));
    }

    private Tensor allocated(DataType type, Shape shape, TensorBuffer memoryOfServer) {
        MemoryPlace place = memoryOfServer.place();
        Tensor tensor = Tensor.of(spec.inputName(), type, shape, memoryOfServer.segment(), place);
        try {
            DeviceCopies.filled(memoryOfServer, _ -> owner.copyPresent(spec.outputName(), tensor));
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
        allocated = true;
        return set(tensor, ReferenceCountedMemory.of(memoryOfServer));
    }

    @Override
    public void fence(Fence fence) {
        Tensor allocatedValue = value;
        if (!allocated || allocatedValue == null) {
            throw error("a fence without memory (expected: allocated before)");
        }
        value = owner.received(allocatedValue.withFence(fence), memory());
    }

    @Override
    public void put(Tensor tensor, Runnable release) {
        ReferenceCountedMemory own = null;
        try {
            check(tensor.type(), tensor.shape());
            if (!tensor.place().isHost()
                    && model.memory().device(tensor.place()).isEmpty()) {
                throw error("lies in " + tensor.place() + " (expected: memory of the host)");
            }
            if (!OutputChecks.isShared(tensor.data())) {
                throw error(OutputChecks.notShared(tensor.data()));
            }
            awaitContent(tensor);
            if (owner.isInput(tensor) || ClientMemory.isClientMemory(tensor.data())) {
                copy(tensor);
            } else {
                own = ReferenceCountedMemory.of(release, owner.retain(tensor));
            }
        } finally {
            if (own == null) { // the value was copied or refused
                ReferenceCountedMemory.of(release, null).release();
            }
        }
        if (own != null) {
            set(Tensor.of(spec.inputName(), tensor.type(), tensor.shape(), tensor.data(), tensor.place()), own);
        }
    }

    /** Waits for the fence: the next execution reads the value at once. Called by the backend. */
    private static void awaitContent(Tensor tensor) {
        try {
            DeviceCopies.awaitContent(tensor);
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
    }

    private void copy(Tensor tensor) {
        TensorBuffer copy;
        try {
            MemoryPlace place = tensor.place();
            TensorBuffer buffer = model.memory().allocate(tensor.byteSize(), place.isHost() ? MemoryPlace.HOST : place);
            copy = DeviceCopies.filled(buffer, data -> DeviceCopies.copy(tensor, buffer.place(), data, model.memory()));
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
        owner.copied(spec.outputName());
        set(
                Tensor.of(spec.inputName(), tensor.type(), tensor.shape(), copy.segment(), copy.place()),
                ReferenceCountedMemory.of(copy));
    }

    private Tensor set(Tensor tensor, ReferenceCountedMemory owned) {
        value = tensor;
        memory = owned;
        return tensor;
    }

    private void check(DataType type, Shape shape) {
        if (ended) {
            throw new IllegalStateException(
                    "state '" + spec.outputName() + "': the execution is finished (expected: not yet)");
        }
        if (value != null) {
            throw error("given twice (expected: once)");
        }
        if (owner.isWrittenElsewhere(spec.outputName())) {
            throw error("given for a request and for its batch (expected: one way or the other)");
        }
        if (type != spec.type()) {
            throw error("type " + type + " (expected: " + spec.type() + ")");
        }
        Shape expected = model.settings().batches() ? spec.dims().prepend(items) : spec.dims();
        if (!shape.isConcrete() || !(expected.accepts(shape) || isGrown(shape))) {
            throw error("shape " + shape + " (expected: " + expected + ")");
        }
    }

    /** Returns whether a shape is valid for a state that grows: only its first value has the configured dimensions. */
    private boolean isGrown(Shape shape) {
        return spec.growableMemory() && (!model.settings().batches() || (shape.rank() > 0 && shape.dim(0) == items));
    }

    /** Returns a value without its fence, which the execution has awaited before; throws the failure of the fence. */
    private Tensor complete(Tensor tensor) {
        if (tensor.fence().isEmpty()) {
            return tensor;
        }
        awaitContent(tensor);
        return Tensor.of(spec.inputName(), tensor.type(), tensor.shape(), tensor.data(), tensor.place());
    }

    private BackendException error(String problem) {
        return SchedulerErrors.state(model.settings(), spec.outputName(), problem);
    }

    /**
     * Returns the part of one request in the value of a whole batch.
     *
     * @param firstItem the index of the first item of the request
     * @throws BackendException if byte strings are not framed, or if the fence of the value failed
     */
    Tensor part(int firstItem, int count) {
        Tensor whole = complete(requireNonNull(value));
        if (!model.settings().batches() || count == items) {
            return whole;
        }
        long start;
        long end;
        if (whole.type().isFixedSize()) {
            long itemSize = whole.byteSize() / items;
            start = firstItem * itemSize;
            end = start + count * itemSize;
        } else {
            long[] offsets = ByteStrings.offsets(whole, items);
            if (offsets == null) {
                throw error(whole.byteSize() + " bytes (expected: " + whole.shape()
                        + " byte strings, each with its length in front)");
            }
            start = offsets[firstItem];
            end = offsets[firstItem + count];
        }
        MemorySegment data = whole.data().asSlice(start, end - start);
        return Tensor.of(spec.inputName(), whole.type(), whole.shape().withFirst(count), data, whole.place());
    }
}
