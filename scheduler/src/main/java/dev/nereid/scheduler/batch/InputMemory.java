package dev.nereid.scheduler.batch;

import dev.nereid.api.InferenceException;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.scheduler.memory.DeviceCopies;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import dev.nereid.scheduler.request.ModelScope;
import dev.nereid.scheduler.request.SchedulerErrors;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Optional;

/** An input in memory of the server, to which the receiver has the only reference. Immutable. */
record InputMemory(Tensor tensor, ReferenceCountedMemory memory) {
    /** Copies the parts of an input of a common shape to a place, one after the other, from wherever they lie. */
    static InputMemory copyOf(ModelScope model, String input, Shape shape, List<Tensor> parts, MemoryPlace place) {
        long byteSize = 0;
        for (Tensor part : parts) {
            byteSize = Math.addExact(byteSize, part.byteSize());
        }
        if (!place.isHost()) {
            checkDevice(model, input, place, "no memory in ");
        }
        for (Tensor part : parts) {
            if (!part.place().isHost()) {
                checkDevice(model, input, part.place(), "lies in ");
            }
        }
        try {
            TensorBuffer buffer = DeviceCopies.filled(
                    model.memory().allocate(byteSize, place), data -> copy(model.memory(), parts, place, data));
            Tensor copied = Tensor.of(input, parts.getFirst().type(), shape, buffer.segment(), buffer.place());
            return new InputMemory(copied, ReferenceCountedMemory.of(buffer));
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
    }

    /** Copies an input on the host to pinned memory; empty if none is left. */
    static Optional<InputMemory> pinned(ModelScope model, String input, Tensor tensor) {
        Optional<TensorBuffer> buffer = model.memory().allocatePinned(tensor.byteSize());
        if (buffer.isEmpty()) {
            return Optional.empty();
        }
        try {
            TensorBuffer pinned = DeviceCopies.filled(buffer.get(), data -> copyHost(tensor.data(), data));
            Tensor copied = Tensor.of(input, tensor.type(), tensor.shape(), pinned.segment(), pinned.place());
            return Optional.of(new InputMemory(copied, ReferenceCountedMemory.of(pinned)));
        } catch (InferenceException e) {
            throw SchedulerErrors.of(e);
        }
    }

    private static void copyHost(MemorySegment from, MemorySegment target) {
        if (ClientMemory.isClientMemory(from)) {
            ClientMemory.copy(from, target);
        } else {
            target.copyFrom(from);
        }
    }

    /** Allocates and writes an input that is derived from the inputs of a batch. */
    static InputMemory derived(ModelScope model, BatchInput derived, List<Shape> sources, boolean batched) {
        Shape shape = DerivedInputs.shape(derived.kind(), sources, batched);
        TensorBuffer buffer = DeviceCopies.filled(
                OutputChecks.allocateZeroed(model, shape.byteSize(derived.type())),
                data -> DerivedInputs.write(derived.kind(), derived.type(), sources, batched, data));
        return new InputMemory(Tensor.of(derived.type(), shape, buffer.segment()), ReferenceCountedMemory.of(buffer));
    }

    private static void copy(TensorMemory memory, List<Tensor> parts, MemoryPlace place, MemorySegment target) {
        long at = 0;
        for (Tensor part : parts) {
            if (place.isHost() && part.place().isHost()) {
                MemorySegment.copy(part.data(), 0, target, at, part.byteSize());
            } else {
                DeviceCopies.copy(part, place, target.asSlice(at, part.byteSize()), memory);
            }
            at += part.byteSize();
        }
    }

    /** Throws unless there is memory of a device. */
    private static void checkDevice(ModelScope model, String input, MemoryPlace place, String problem) {
        if (model.memory().device(place).isEmpty()) {
            throw error(model, input, ErrorCode.UNSUPPORTED, problem + place + " (expected: memory of the host)");
        }
    }

    static BackendException error(ModelScope model, String input, ErrorCode code, String problem) {
        return new BackendException(
                code, "input '" + input + "' of model '" + model.settings().name() + "': " + problem);
    }
}
