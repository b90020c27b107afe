package dev.nereid.http.infer;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import io.netty.buffer.Unpooled;
import io.vertx.core.buffer.Buffer;
import io.vertx.core.internal.buffer.BufferInternal;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.Arrays;
import java.util.List;

/** JSON text of a small response with binary outputs. Immutable. */
final class ResponseTemplate {
    private final String model;
    private final long version;
    private final List<Output> outputs;
    private final byte[] text;

    /** The total size of text and outputs. */
    private final int size;

    /** An output without its bytes. Immutable. */
    private record Output(String name, DataType type, Shape shape, long byteSize) {
        boolean is(NamedTensor other) {
            Tensor tensor = other.tensor();
            return tensor.type() == type
                    && tensor.byteSize() == byteSize
                    && tensor.shape().equals(shape)
                    && other.name().equals(name);
        }
    }

    /**
     * Creates the template of a response without id and parameters, with binary outputs only. The written bytes begin
     * with {@code jsonSize} bytes of text.
     */
    ResponseTemplate(InferResponse response, byte[] json, int jsonSize) {
        model = response.model();
        version = response.version();
        outputs =
                response.outputs().stream().map(ResponseTemplate::withoutBytes).toList();
        text = Arrays.copyOf(json, jsonSize);
        size = Math.toIntExact(
                jsonSize + outputs.stream().mapToLong(Output::byteSize).sum());
    }

    private static Output withoutBytes(NamedTensor output) {
        Tensor tensor = output.tensor();
        return new Output(output.name(), tensor.type(), tensor.shape(), tensor.byteSize());
    }

    /** Returns whether this template fits a response without id and parameters to the same request. */
    boolean matches(InferResponse response) {
        List<NamedTensor> tensors = response.outputs();
        if (response.version() != version
                || tensors.size() != outputs.size()
                || !response.model().equals(model)) {
            return false;
        }
        for (int i = 0; i < tensors.size(); i++) {
            NamedTensor tensor = tensors.get(i);
            if (!outputs.get(i).is(tensor) || !tensor.tensor().place().isHost()) {
                return false;
            }
        }
        return true;
    }

    /** Returns the number of bytes of the text. */
    int jsonSize() {
        return text.length;
    }

    /** Returns the body of a response, with a copy of its outputs. */
    Buffer body(InferResponse response) {
        byte[] body = Arrays.copyOf(text, size);
        int at = text.length;
        List<NamedTensor> tensors = response.outputs();
        for (int i = 0; i < tensors.size(); i++) {
            MemorySegment data = tensors.get(i).tensor().data();
            int length = (int) data.byteSize();
            MemorySegment.copy(data, ValueLayout.JAVA_BYTE, 0, body, at, length);
            at += length;
        }
        return BufferInternal.buffer(Unpooled.wrappedBuffer(body));
    }
}
