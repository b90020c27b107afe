package dev.nereid.benchmarks.load;

import com.google.protobuf.ByteString;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelRef;
import dev.nereid.spi.MemoryPlace;
import inference.ModelInferRequest;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Random;

/** A prepared request with one FP32 input. Immutable. */
public final class InferBody {
    private static final String TYPE = "FP32";

    /** As memory of the server's own. */
    private static final long ALIGNMENT = 64;

    private final String input;
    private final List<Long> shape;
    private final byte[] tensor;
    private final String id;

    private InferBody(String input, List<Long> shape, byte[] tensor, String id) {
        this.input = input;
        this.shape = shape;
        this.tensor = tensor;
        this.id = id;
    }

    /**
     * Creates a request with realistic content: zeros would be cheap for some operators. Its shape has a batch
     * dimension; it is the same for the same arguments.
     */
    public static InferBody of(String input, Long... shape) {
        int elements = Math.toIntExact(List.of(shape).stream().reduce(1L, Math::multiplyExact));
        ByteBuffer content =
                ByteBuffer.allocate(Math.multiplyExact(elements, Float.BYTES)).order(ByteOrder.LITTLE_ENDIAN);
        Random random = new Random(elements);
        while (content.hasRemaining()) {
            content.putFloat(random.nextFloat());
        }
        return new InferBody(input, List.of(shape), content.array(), "");
    }

    InferBody withId(String name) {
        return new InferBody(input, shape, tensor, name);
    }

    String input() {
        return input;
    }

    public long[] dims() {
        return shape();
    }

    long[] shape() {
        return shape.stream().mapToLong(Long::longValue).toArray();
    }

    public ByteBuffer tensor() {
        return ByteBuffer.wrap(tensor).asReadOnlyBuffer().order(ByteOrder.LITTLE_ENDIAN);
    }

    private String header() {
        return (id.isEmpty() ? "{" : "{\"id\":\"" + id + "\",")
                + "\"inputs\":[{\"name\":\"%s\",\"datatype\":\"%s\",\"shape\":%s,\"parameters\":{\"binary_data_size\":%d}}],\"parameters\":{\"binary_data_output\":true}}"
                        .formatted(input, TYPE, shape.toString().replace(" ", ""), tensor.length);
    }

    /** Returns the size of the JSON part in bytes. */
    int headerLength() {
        return header().getBytes(StandardCharsets.UTF_8).length;
    }

    /** Returns the whole body over HTTP: the JSON part, then the content. */
    public byte[] http() {
        byte[] header = header().getBytes(StandardCharsets.UTF_8);
        return ByteBuffer.allocate(header.length + tensor.length)
                .put(header)
                .put(tensor)
                .array();
    }

    /** Returns the request to a server in this process, with its content in the given memory. */
    InferRequest request(String model, Arena arena) {
        MemorySegment content = MemorySegment.ofBuffer(tensor());
        MemorySegment data = arena.allocate(content.byteSize(), ALIGNMENT).copyFrom(content);
        return InferRequest.of(
                ModelRef.latest(model),
                List.of(InputTensor.of(input, TYPE, shape(), data, MemoryPlace.HOST)),
                () -> {});
    }

    /** Returns the request over gRPC. */
    public ModelInferRequest grpc(String model) {
        return ModelInferRequest.newBuilder()
                .setModelName(model)
                .setId(id)
                .addInputs(ModelInferRequest.InferInputTensor.newBuilder()
                        .setName(input)
                        .setDatatype(TYPE)
                        .addAllShape(shape))
                .addRawInputContents(ByteString.copyFrom(tensor))
                .build();
    }
}
