package dev.nereid.http.infer;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.http.body.ContentCoding;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.spi.Tensor;
import java.util.List;

/**
 * Formats of a response: output formats, content coding and request memory. Immutable, but for the memory.
 *
 * @param outputs how each output is to be written
 * @param coding how the body is to be coded
 * @param memory the memory of the request, which outputs may lie in
 */
record ResponseFormat(RequestedOutputs outputs, ContentCoding coding, RequestMemory memory) {
    /** Returns how much work the response is: its text, the tensors to be written as JSON, and those to be copied. */
    long bytesToWrite(InferResponse response) {
        long bytes = response.id().length();
        List<NamedTensor> tensors = response.outputs();
        for (int i = 0; i < tensors.size(); i++) {
            Tensor tensor = tensors.get(i).tensor();
            RequestedOutputs.Format form = outputs.format(tensors.get(i).name());
            if (form == RequestedOutputs.Format.JSON
                    || (form == RequestedOutputs.Format.BINARY && memory.hasShared() && isShared(tensor))) {
                bytes += tensor.byteSize();
            }
        }
        return bytes;
    }

    /** Says whether reading a tensor may fail, since it lies in memory that the client can take away. */
    boolean isShared(Tensor tensor) {
        return memory.isShared(tensor.data());
    }
}
