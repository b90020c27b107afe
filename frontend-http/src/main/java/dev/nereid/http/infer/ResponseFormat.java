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
 * @param outputs the format of each output
 * @param coding the content coding of the body
 * @param memory the memory of the request, in which outputs may lie
 */
record ResponseFormat(RequestedOutputs outputs, ContentCoding coding, RequestMemory memory) {
    /** Returns the work of writing a response in bytes. It consists of id, tensors in JSON, and tensors to copy. */
    long bytesToWrite(InferResponse response) {
        long bytes = response.id().length();
        List<NamedTensor> tensors = response.outputs();
        for (int i = 0; i < tensors.size(); i++) {
            Tensor tensor = tensors.get(i).tensor();
            RequestedOutputs.Format format = outputs.format(tensors.get(i).name());
            if (format == RequestedOutputs.Format.JSON
                    || (format == RequestedOutputs.Format.BINARY && memory.hasShared() && isShared(tensor))) {
                bytes += tensor.byteSize();
            }
        }
        return bytes;
    }

    /** Returns whether reading a tensor may fail. It may if the tensor lies in memory that the client can truncate. */
    boolean isShared(Tensor tensor) {
        return memory.isShared(tensor.data());
    }
}
