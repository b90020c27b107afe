package dev.nereid.server.request;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.memory.ClientMemory;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import java.util.ArrayList;
import java.util.List;

/**
 * Copies byte strings out of client memory before the check. A client could change their lengths afterwards, and
 * backends rely on the check. Static functions only.
 */
public final class OwnedStrings {
    private OwnedStrings() {}

    /**
     * Returns a request with byte strings that no client can change.
     *
     * @param memory the memory for copies
     * @return the request itself if there is nothing to copy; otherwise a copy, which belongs to the caller in its
     *     place
     * @throws InferenceException if there is no memory, or if the client's memory is gone; the request stays with the
     *     caller
     */
    public static InferRequest of(InferRequest request, TensorMemory memory) {
        List<InputTensor> inputs = request.inputs();
        for (int i = 0; i < inputs.size(); i++) {
            if (isToBeCopied(inputs.get(i))) {
                return copy(request, memory);
            }
        }
        return request;
    }

    private static boolean isToBeCopied(InputTensor input) {
        return input.data().isMapped() && input.datatype().equals(DataType.BYTES.name());
    }

    private static InferRequest copy(InferRequest request, TensorMemory memory) {
        List<InputTensor> inputs = new ArrayList<>();
        List<TensorBuffer> copies = new ArrayList<>();
        boolean copied = false;
        try {
            for (InputTensor input : request.inputs()) {
                if (isToBeCopied(input)) {
                    TensorBuffer copy = memory.allocate(input.data().byteSize());
                    copies.add(copy);
                    ClientMemory.copy(input.data(), copy.segment());
                    inputs.add(InputTensor.of(
                            input.name(), input.datatype(), input.dims(), copy.segment(), MemoryPlace.HOST));
                } else {
                    inputs.add(input);
                }
            }
            copied = true;
        } finally {
            if (!copied) {
                copies.forEach(TensorBuffer::close);
            }
        }
        Runnable release = () -> {
            copies.forEach(TensorBuffer::close);
            request.release().run();
        };
        return new InferRequest(
                request.model(),
                request.id(),
                inputs,
                request.outputs(),
                request.parameters(),
                request.options(),
                release);
    }
}
