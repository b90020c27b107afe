package dev.nereid.server.request;

import dev.nereid.api.InferRequest;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.RequestedOutput;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;

/** Calls for tests. */
final class InferRequests {
    private InferRequests() {}

    static InputTensor input(String name, String datatype, MemorySegment data, long... dims) {
        return InputTensor.of(name, datatype, dims, data, MemoryPlace.HOST);
    }

    /** Returns an input of zero bytes. */
    static InputTensor zeros(String name, String datatype, int bytes, long... dims) {
        return input(name, datatype, MemorySegment.ofArray(new byte[bytes]), dims);
    }

    static InferRequest request(String id, List<InputTensor> inputs, List<String> outputs) {
        return new InferRequest(
                ModelRef.latest("m"),
                id,
                inputs,
                outputs.stream().map(RequestedOutput::of).toList(),
                Map.of(),
                RequestOptions.DEFAULT,
                () -> {});
    }

    static InferRequest request(InputTensor... inputs) {
        return request("", List.of(inputs), List.of());
    }

    /** Strings, each with its length before it. */
    static MemorySegment strings(String... strings) {
        ByteBuffer bytes = ByteBuffer.allocate(1 << 16).order(ByteOrder.LITTLE_ENDIAN);
        for (String string : strings) {
            byte[] content = string.getBytes(StandardCharsets.UTF_8);
            bytes.putInt(content.length).put(content);
        }
        return MemorySegment.ofBuffer(bytes.flip());
    }

    static MemorySegment bytes(int... values) {
        byte[] bytes = new byte[values.length];
        for (int i = 0; i < values.length; i++) {
            bytes[i] = (byte) values[i];
        }
        return MemorySegment.ofArray(bytes);
    }
}
