package dev.nereid.http;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.Tensor;
import java.util.List;

/**
 * How the answer to a request is to be written. Immutable, but for the memory.
 *
 * @param outputs how each output is to be written
 * @param coding how the body is to be coded
 * @param memory the memory of the request, which outputs may lie in
 */
record AnswerForm(RequestedOutputs outputs, ContentCoding coding, CallMemory memory) {
    /** Returns how many bytes of tensors are to be written as JSON. */
    long jsonBytes(InferResponse response) {
        long bytes = 0;
        List<NamedTensor> tensors = response.outputs();
        for (int i = 0; i < tensors.size(); i++) {
            if (outputs.form(tensors.get(i).name()) == RequestedOutputs.Form.JSON) {
                bytes += tensors.get(i).tensor().byteSize();
            }
        }
        return bytes;
    }

    /** Says whether reading a tensor may fail, since it lies in memory that the client can take away. */
    boolean isShared(Tensor tensor) {
        return memory.isShared(tensor.data());
    }
}
