package dev.nereid.testkit.server;

import dev.nereid.api.InferResponse;
import dev.nereid.api.NamedTensor;
import dev.nereid.api.parameter.ParameterView;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Parameters;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The outputs of one response, as copies. Immutable. */
public final class LocalOutputs {
    private final Map<String, Tensor> tensors = new LinkedHashMap<>();
    private final Parameters parameters;
    private final String model;
    private final long version;
    private final String id;

    private LocalOutputs(InferResponse response) {
        model = response.model();
        version = response.version();
        id = response.id();
        parameters = ParameterView.of(Map.copyOf(response.parameters()));
        for (NamedTensor output : response.outputs()) {
            tensors.put(output.name(), copy(output));
        }
    }

    /** Copies a response. */
    static LocalOutputs of(InferResponse response) {
        return new LocalOutputs(response);
    }

    private static Tensor copy(NamedTensor output) {
        Tensor tensor = output.tensor();
        MemorySegment data = Arena.ofAuto().allocate(tensor.byteSize(), Long.BYTES);
        MemorySegment.copy(tensor.data(), 0, data, 0, tensor.byteSize());
        return Tensor.of(output.name(), tensor.type(), tensor.shape(), data, MemoryPlace.HOST);
    }

    /**
     * Returns the names of the outputs.
     *
     * @return the names
     */
    public Set<String> names() {
        return Set.copyOf(tensors.keySet());
    }

    /**
     * Returns an output.
     *
     * @param name its name
     * @return the output
     * @throws AssertionError if the response has no such output
     */
    public Tensor tensor(String name) {
        Tensor tensor = tensors.get(name);
        if (tensor == null) {
            throw new AssertionError("output '" + name + "': not in the response (it has: " + tensors.keySet() + ")");
        }
        return tensor;
    }

    private Tensor tensor(String name, DataType type) {
        Tensor tensor = tensor(name);
        if (tensor.type() != type) {
            throw new AssertionError("output '" + name + "': " + tensor.type() + " (expected: " + type + ")");
        }
        return tensor;
    }

    /**
     * Returns the shape of an output.
     *
     * @param name its name
     * @return the shape, with the batch dimension if the model has batches
     */
    public Shape shape(String name) {
        return tensor(name).shape();
    }

    /**
     * Returns an output of {@link DataType#FP32}.
     *
     * @param name its name
     * @return its elements
     * @throws AssertionError if there is no such output, or one of another type
     */
    public float[] floats(String name) {
        return tensor(name, DataType.FP32).data().toArray(ValueLayout.JAVA_FLOAT_UNALIGNED);
    }

    /**
     * Returns an output of {@link DataType#FP64}.
     *
     * @param name its name
     * @return its elements
     * @throws AssertionError if there is no such output, or one of another type
     */
    public double[] doubles(String name) {
        return tensor(name, DataType.FP64).data().toArray(ValueLayout.JAVA_DOUBLE_UNALIGNED);
    }

    /**
     * Returns an output of {@link DataType#INT32}.
     *
     * @param name its name
     * @return its elements
     * @throws AssertionError if there is no such output, or one of another type
     */
    public int[] ints(String name) {
        return tensor(name, DataType.INT32).data().toArray(ValueLayout.JAVA_INT_UNALIGNED);
    }

    /**
     * Returns an output of {@link DataType#INT64}.
     *
     * @param name its name
     * @return its elements
     * @throws AssertionError if there is no such output, or one of another type
     */
    public long[] longs(String name) {
        return tensor(name, DataType.INT64).data().toArray(ValueLayout.JAVA_LONG_UNALIGNED);
    }

    /**
     * Returns an output of {@link DataType#BYTES} as texts.
     *
     * @param name its name
     * @return its elements, decoded as UTF-8
     * @throws AssertionError if there is no such output, or one of another type
     */
    public List<String> strings(String name) {
        return tensor(name, DataType.BYTES).strings();
    }

    /**
     * Returns an output of {@link DataType#BYTES}.
     *
     * @param name its name
     * @return its elements
     * @throws AssertionError if there is no such output, or one of another type
     */
    public List<byte[]> byteStrings(String name) {
        return tensor(name, DataType.BYTES).byteStrings();
    }

    /**
     * Returns the parameters of the response.
     *
     * @return the parameters
     */
    public Parameters parameters() {
        return parameters;
    }

    /**
     * Returns the version that responded.
     *
     * @return the number of the version
     */
    public long version() {
        return version;
    }

    /**
     * Returns the id of the request.
     *
     * @return the id; empty for none
     */
    public String id() {
        return id;
    }

    /** Returns the model with the types and shapes of the outputs. */
    @Override
    public String toString() {
        return model + " version " + version + ": " + tensors;
    }
}
