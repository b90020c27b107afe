package dev.nereid.scheduler.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.memory.DeviceMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Device;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Tensor;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.List;

/**
 * Moves inputs to memory that an instance accepts, before their execution. Immutable.
 *
 * <p>Inputs in memory of a client are copied, unless the backend works there. Inputs on a device are moved to the host,
 * unless the backend accepts them there and the device is the instance's own. Byte strings are accepted on the host
 * alone, where their framing was checked.
 */
public final class InputStaging {
    private final ModelScope model;
    private final AcceptedMemory accepted;
    private final Device device;

    /**
     * Creates the staging of one instance.
     *
     * @param accepted the memory in which the backend works
     * @param device the device of the instance
     */
    public InputStaging(ModelScope model, AcceptedMemory accepted, Device device) {
        this.model = model;
        this.accepted = accepted;
        this.device = device;
    }

    /**
     * Returns whether inputs may have to be moved.
     *
     * @param inPlace whether the execution works in memory of the client
     */
    static boolean isNeeded(RequestInputs inputs, boolean inPlace) {
        return !inputs.areOnHost() || (inputs.useClientMemory() && !inPlace);
    }

    /**
     * Moves inputs.
     *
     * @param originals all inputs
     * @param inPlace whether the execution works in memory of the client
     * @return the inputs in their order, with copies in place of those that were moved
     * @throws InferenceException if no memory is left, the client's is gone, or an input lies where it cannot be copied
     *     from; all copies are freed then
     */
    Staged stage(List<NamedTensor> originals, boolean inPlace) {
        List<NamedTensor> staged = new ArrayList<>(originals.size());
        List<TensorBuffer> copies = new ArrayList<>(originals.size());
        try {
            for (NamedTensor input : originals) {
                Tensor tensor = input.tensor();
                if (!tensor.place().isHost()) {
                    staged.add(onHost(input, copies));
                } else if (!inPlace && ClientMemory.isClientMemory(tensor.data())) {
                    TensorBuffer copy = model.memory().allocate(tensor.byteSize());
                    copies.add(copy);
                    ClientMemory.copy(tensor.data(), copy.segment());
                    staged.add(in(input, copy.segment()));
                } else {
                    staged.add(input);
                }
            }
        } catch (RuntimeException | Error e) {
            copies.forEach(TensorBuffer::close);
            throw e;
        }
        return new Staged(staged, copies);
    }

    private NamedTensor onHost(NamedTensor input, List<TensorBuffer> copies) {
        Tensor tensor = input.tensor();
        boolean text = tensor.type() == DataType.BYTES;
        if (!text && accepted.includes(tensor.place(), device)) {
            return input;
        }
        DeviceMemory source =
                text ? null : model.memory().device(tensor.place()).orElse(null);
        if (source == null) {
            throw new InferenceException(
                    ErrorCode.UNSUPPORTED,
                    "input '" + input.name() + "' of model '" + model.settings().name() + "': "
                            + (text ? "byte strings in " : "lies in ") + tensor.place() + " (expected: "
                            + (text ? "memory of the host" : accepted.describe(device)) + ")");
        }
        TensorBuffer copy = DeviceCopies.toHost(tensor, source, model.memory());
        copies.add(copy);
        return in(input, copy.segment());
    }

    /**
     * Inputs of one request as its backend sees them. Immutable; owned by the request, which closes it when its inputs
     * are freed.
     *
     * @param inputs the inputs in their order
     * @param copies the memory of those that were moved
     */
    record Staged(List<NamedTensor> inputs, List<TensorBuffer> copies) implements AutoCloseable {
        /** Frees the copies. */
        @Override
        public void close() {
            copies.forEach(TensorBuffer::close);
        }
    }

    private static NamedTensor in(NamedTensor input, MemorySegment data) {
        Tensor tensor = input.tensor();
        return new NamedTensor(input.name(), Tensor.of(tensor.type(), tensor.shape(), data));
    }
}
