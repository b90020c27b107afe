package dev.nereid.grpc.wire;

import java.util.List;
import java.util.Map;

/**
 * A parsed inference request with tensors in the received bytes. Immutable; readable as long as its bytes are, and
 * closed with them.
 *
 * @param names the names of the model, its version and the request
 * @param rawContents the positions of the inputs' raw contents
 */
public record InferMessage(
        MessageBytes bytes,
        RequestNames names,
        Map<String, WireParameter> parameters,
        List<Input> inputs,
        List<Output> outputs,
        List<ByteRange> rawContents)
        implements AutoCloseable {
    /**
     * An input.
     *
     * @param contents the positions of its typed contents; several if the client wrote them in parts, empty if it wrote
     *     none
     */
    record Input(
            String name,
            String datatype,
            Dims shape,
            Map<String, WireParameter> parameters,
            List<ByteRange> contents) {}

    /** An output. */
    record Output(String name, Map<String, WireParameter> parameters) {}

    @Override
    public void close() {
        bytes.close();
    }
}
