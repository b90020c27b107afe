package dev.nereid.server.request;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.memory.TensorMemory;
import dev.nereid.scheduler.request.ClientMemory;
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
     * Returns a call whose byte strings no client can change.
     *
     * @param call a call
     * @param memory where they are copied to
     * @return the call itself if there is nothing to copy; otherwise one like it, which belongs to the caller in its
     *     place
     * @throws InferenceException if there is no memory, or if the client's is gone; the call stays with the caller
     */
    public static InferRequest of(InferRequest call, TensorMemory memory) {
        List<InputTensor> inputs = call.inputs();
        for (int i = 0; i < inputs.size(); i++) {
            if (isToBeCopied(inputs.get(i))) {
                return copy(call, memory);
            }
        }
        return call;
    }

    private static boolean isToBeCopied(InputTensor input) {
        return input.data().isMapped() && input.datatype().equals(DataType.BYTES.name());
    }

    private static InferRequest copy(InferRequest call, TensorMemory memory) {
        List<InputTensor> inputs = new ArrayList<>();
        List<TensorBuffer> copies = new ArrayList<>();
        boolean copied = false;
        try {
            for (InputTensor input : call.inputs()) {
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
            call.release().run();
        };
        return new InferRequest(
                call.model(), call.id(), inputs, call.outputs(), call.parameters(), call.options(), release);
    }
}
