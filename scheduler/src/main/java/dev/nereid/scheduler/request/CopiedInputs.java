package dev.nereid.scheduler.request;

import dev.nereid.api.InferenceException;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.spi.Tensor;
import java.util.ArrayList;
import java.util.List;

/**
 * Inputs of one request, with those in client memory copied. Immutable; owned by the request, which closes it when its
 * inputs are released.
 */
final class CopiedInputs implements AutoCloseable {
    private final List<NamedTensor> inputs;
    private final List<TensorBuffer> copies;

    /**
     * Copies the inputs that may lie in memory of a client.
     *
     * @param originals all inputs
     * @param memory where copies are made
     * @throws InferenceException if no memory is left, or the client's is gone; all copies are freed then
     */
    CopiedInputs(List<NamedTensor> originals, TensorMemory memory) {
        inputs = new ArrayList<>(originals.size());
        copies = new ArrayList<>(originals.size());
        try {
            for (NamedTensor input : originals) {
                Tensor tensor = input.tensor();
                inputs.add(
                        ClientMemory.isClientMemory(tensor.data())
                                ? new NamedTensor(input.name(), copy(tensor, memory))
                                : input);
            }
        } catch (RuntimeException | Error e) {
            close();
            throw e;
        }
    }

    private Tensor copy(Tensor tensor, TensorMemory memory) {
        TensorBuffer copy = memory.allocate(tensor.byteSize());
        copies.add(copy);
        ClientMemory.copy(tensor.data(), copy.segment());
        return Tensor.of(tensor.type(), tensor.shape(), copy.segment());
    }

    /** Returns the inputs in their order, with the copies in place of the originals. */
    List<NamedTensor> inputs() {
        return inputs;
    }

    /** Frees the copies. */
    @Override
    public void close() {
        copies.forEach(TensorBuffer::close);
    }
}
