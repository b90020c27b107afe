package dev.nereid.http.infer;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.http.body.ContentCoding;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.spi.Tensor;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Formats of a response: output formats, content coding and request memory. Immutable, but for the memory and the
 * earlier responses.
 *
 * @param repeated the earlier responses to the same request; {@code null} if it is not cached
 */
record ResponseFormat(
        RequestedOutputs outputs,
        ContentCoding coding,
        RequestMemory memory,
        @Nullable RepeatedResponse repeated) {
    /** Returns the work of writing a response in bytes. It consists of id and tensors in JSON. */
    long bytesToWrite(InferResponse response) {
        long bytes = response.id().length();
        List<NamedTensor> tensors = response.outputs();
        for (int i = 0; i < tensors.size(); i++) {
            Tensor tensor = tensors.get(i).tensor();
            if (outputs.format(tensors.get(i).name()) == RequestedOutputs.Format.JSON) {
                bytes += tensor.byteSize();
            }
        }
        return bytes;
    }
}
