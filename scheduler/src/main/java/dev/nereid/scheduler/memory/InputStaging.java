package dev.nereid.scheduler.memory;

import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Moves inputs to memory that an instance accepts, before their execution. Immutable.
 *
 * <p>Inputs in memory of a client are copied, unless the backend works there. Inputs on a device are moved to the host,
 * unless the backend accepts them there and the device is the instance's own. Byte strings are accepted on the host
 * alone, where their framing was checked. Inputs that stay on a device begin at a multiple of 256 bytes.
 */
public final class InputStaging {
    private final TensorMemory memory;
    private final String model;
    private final AcceptedMemory accepted;
    private final Device device;

    /** Creates the staging of one instance. The model's name is for errors; copies are made in {@code memory}. */
    public InputStaging(TensorMemory memory, String model, AcceptedMemory accepted, Device device) {
        this.memory = memory;
        this.model = model;
        this.accepted = accepted;
        this.device = device;
    }

    /**
     * Moves inputs.
     *
     * @param originals all inputs, some of which may have been moved before
     * @param inPlace whether the execution works in memory of the client
     * @return the inputs in their order, with copies in place of the moved ones
     * @throws InferenceException if no memory is left, the client's is gone, or an input lies where it cannot be copied
     *     from; all copies are freed then
     */
    public Staged stage(List<NamedTensor> originals, boolean inPlace) {
        List<NamedTensor> staged = new ArrayList<>(originals.size());
        List<TensorBuffer> copies = new ArrayList<>(originals.size());
        boolean isStaged = false;
        try {
            for (NamedTensor input : originals) {
                Tensor tensor = input.tensor();
                if (!tensor.place().isHost()) {
                    staged.add(onHost(input, copies));
                } else if (!inPlace && ClientMemory.isClientMemory(tensor.data())) {
                    TensorBuffer copy = memory.allocate(tensor.byteSize());
                    copies.add(copy);
                    ClientMemory.copy(tensor.data(), copy.segment());
                    staged.add(in(input, copy.segment()));
                } else {
                    staged.add(input);
                }
            }
            isStaged = true;
        } finally {
            if (!isStaged) {
                copies.forEach(TensorBuffer::close);
            }
        }
        return new Staged(staged, copies);
    }

    private NamedTensor onHost(NamedTensor input, List<TensorBuffer> copies) {
        Tensor tensor = input.tensor();
        boolean text = tensor.type() == DataType.BYTES;
        if (!text && accepted.includes(tensor.place(), device)) {
            return DeviceCopies.isAligned(tensor.data()) ? input : aligned(input, copies);
        }
        DeviceMemory source = text ? null : memory.device(tensor.place()).orElse(null);
        if (source == null) {
            throw new InferenceException(
                    ErrorCode.UNSUPPORTED,
                    "input '" + input.name() + "' of model '" + model + "': "
                            + (text ? "byte strings in " : "lies in ") + tensor.place() + " (expected: "
                            + (text ? "memory of the host" : accepted.describe(device)) + ")");
        }
        TensorBuffer copy = DeviceCopies.toHost(tensor, source, memory);
        copies.add(copy);
        return in(input, copy.segment());
    }

    /** Copies an input on the device: kernels that read numbers where none may begin end the use of a GPU. */
    private NamedTensor aligned(NamedTensor input, List<TensorBuffer> copies) {
        Tensor tensor = input.tensor();
        TensorBuffer copy = allocate(tensor);
        copies.add(copy);
        DeviceCopies.copy(tensor, copy.place(), copy.segment(), memory);
        return in(input, copy.segment(), copy.place());
    }

    /** Allocates memory for a copy where a tensor lies, or on the host if none is left there. */
    private TensorBuffer allocate(Tensor tensor) {
        try {
            return memory.allocate(tensor.byteSize(), tensor.place());
        } catch (InferenceException e) {
            if (e.code() != ErrorCode.UNAVAILABLE) {
                throw e;
            }
            return memory.allocate(tensor.byteSize());
        }
    }

    /**
     * Inputs of one request in order, as its backend sees them, with the copies of the moved ones. Immutable; owned by
     * the request, which closes it when its inputs are freed.
     */
    public record Staged(List<NamedTensor> inputs, List<TensorBuffer> copies) implements AutoCloseable {
        /** Returns these inputs, moved after some of them had been moved before; they own all copies. */
        public Staged after(Staged before) {
            if (copies.isEmpty()) {
                return before;
            }
            List<TensorBuffer> all = new ArrayList<>(before.copies);
            all.addAll(copies);
            return new Staged(inputs, all);
        }

        @Override
        public void close() {
            copies.forEach(TensorBuffer::close);
        }
    }

    private static NamedTensor in(NamedTensor input, MemorySegment data) {
        return in(input, data, MemoryPlace.HOST);
    }

    private static NamedTensor in(NamedTensor input, MemorySegment data, MemoryPlace place) {
        Tensor tensor = input.tensor();
        return new NamedTensor(input.name(), Tensor.of(input.name(), tensor.type(), tensor.shape(), data, place));
    }
}
