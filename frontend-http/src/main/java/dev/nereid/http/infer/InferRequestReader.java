package dev.nereid.http.infer;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.Quoted;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.http.json.InputMetadata;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.JsonNumber;
import dev.nereid.http.json.JsonReader;
import dev.nereid.http.json.JsonTensorReader;
import dev.nereid.spi.MemoryPlace;
import java.lang.foreign.MemorySegment;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;

/**
 * Reads the body of an inference request: JSON, then binary inputs. Confined to the thread that reads the request.
 *
 * <p>Checks run in the order of the reference server, so that a request with two errors gets the same one.
 */
final class InferRequestReader {
    private static final String[] INPUT_PARAMETERS = {"binary_data_size", "shared_memory_region"};

    private final String model;
    private final MemorySegment body;
    private final JsonReader json;
    private final RequestMemory memory;
    private final JsonTensorReader tensors;
    private final SharedTensorReader shared;
    private final JsonNumber number = new JsonNumber();
    private String id = "";
    /** The offset of the next binary input. */
    private long payloadOffset;

    /** The number of inputs that view the body. */
    private int payloadCount;

    private int inputCount;

    /** Creates a request's reader. The body begins with {@code jsonLength} bytes of JSON; the model is for errors. */
    InferRequestReader(String model, MemorySegment body, long jsonLength, RequestMemory memory, long maxTensorBytes) {
        this.model = model;
        this.body = body;
        this.json = new JsonReader(jsonLength == body.byteSize() ? body : body.asSlice(0, jsonLength));
        this.memory = memory;
        this.tensors = new JsonTensorReader(maxTensorBytes);
        this.shared = new SharedTensorReader(json, memory);
        this.payloadOffset = jsonLength;
    }

    /**
     * Reads the request. Its inputs view the body or memory that was allocated for them.
     *
     * @throws InferenceException if the request is invalid
     */
    InferRequestBody read() {
        try {
            return readParts();
        } catch (InferenceException e) {
            JsonFields.check(json); // a syntax error takes precedence, wherever it is
            throw e;
        }
    }

    private InferRequestBody readParts() {
        RequestIndex index = RequestIndex.of(json);
        if (index.id() != JsonFields.ABSENT) {
            id = JsonFields.string(json, index.id(), "id");
        }
        Map<String, ParameterValue> parameters = Map.of();
        RequestOptions options = RequestOptions.DEFAULT;
        boolean binaryOutput = false;
        if (index.parameters() != JsonFields.ABSENT) {
            JsonParameterReader read = new JsonParameterReader(json, index.parameters(), number);
            parameters = read.backendParameters();
            options = read.options();
            binaryOutput = read.binaryOutput();
        }
        List<InputTensor> inputs = readInputs(index);
        RequestedOutputs outputs = index.outputs() == JsonFields.ABSENT
                ? RequestedOutputs.all(binaryOutput)
                : new RequestedOutputsReader(json, id, shared).read(index.outputs(), binaryOutput);
        return new InferRequestBody(id, inputs, outputs, parameters, options, null);
    }

    /** Returns the request's id; empty if it was not read. */
    String id() {
        return id;
    }

    /** Returns whether an input views the body, which is needed in that case. */
    boolean usesBody() {
        return payloadCount > 0;
    }

    /** Returns whether there are inputs, and every one views the body. */
    boolean usesOnlyBody() {
        return payloadCount > 0 && payloadCount == inputCount;
    }

    /** Returns whether data was ignored, as {@link JsonTensorReader#ignoredData} does. */
    boolean ignoredData() {
        return tensors.ignoredData();
    }

    private List<InputTensor> readInputs(RequestIndex index) {
        JsonFields.enterArray(json, index.inputs(), "inputs");
        DistinctNames names = new DistinctNames();
        inputCount = index.inputCount();
        List<InputTensor> inputs = new ArrayList<>(inputCount);
        for (int i = 0; i < inputCount; i++) {
            json.path().enter("inputs", i);
            inputs.add(readInput(index, i, names));
        }
        json.path().leave();
        if (payloadOffset != body.byteSize()) {
            throw JsonFields.invalid("unexpected additional input data for model '" + Quoted.text(model) + "'");
        }
        return inputs;
    }

    private InputTensor readInput(RequestIndex index, int input, DistinctNames names) {
        int data = index.member(input, RequestIndex.DATA);
        int[] sources = new int[INPUT_PARAMETERS.length];
        JsonFields.find(json, index.member(input, RequestIndex.PARAMETERS), INPUT_PARAMETERS, sources);
        checkSources(data, sources[0], sources[1]);
        String name = JsonFields.string(json, index.member(input, RequestIndex.NAME), "name");
        String datatype = JsonFields.string(json, index.member(input, RequestIndex.DATATYPE), "datatype");
        long[] dims = readShape(name, index.member(input, RequestIndex.SHAPE));
        if (!names.add(name)) {
            throw JsonFields.invalid(
                    Quoted.requestPrefix(id) + "input '" + Quoted.text(name) + "' already exists in request");
        }
        MemorySegment bytes;
        if (sources[0] != JsonFields.ABSENT) {
            bytes = readPayload(name, sources[0]);
        } else if (sources[1] != JsonFields.ABSENT) {
            TensorBuffer part = shared.read(index.member(input, RequestIndex.PARAMETERS));
            return InputTensor.of(name, datatype, dims, part.segment(), part.place());
        } else {
            bytes = tensors.read(json, data, new InputMetadata(name, datatype, dims), memory);
        }
        return InputTensor.of(name, datatype, dims, bytes, MemoryPlace.HOST);
    }

    private static void checkSources(int data, int binary, int region) {
        boolean hasData = data != JsonFields.ABSENT;
        boolean hasBinary = binary != JsonFields.ABSENT;
        boolean hasRegion = region != JsonFields.ABSENT;
        boolean hasOneSource = hasData ? !hasBinary && !hasRegion : hasBinary != hasRegion;
        if (!hasOneSource) {
            String set = (hasData ? " 'data'" : "")
                    + (hasBinary ? " 'binary_data_size'" : "")
                    + (hasRegion ? " 'shared_memory_region'" : "");
            throw JsonFields.invalid("Input must set only one of the following fields: 'data', 'binary_data_size' in"
                    + " 'parameters', 'shared_memory_region' in 'parameters'. But "
                    + (set.isEmpty() ? "no field is set" : "set" + set));
        }
    }

    private long[] readShape(String input, int at) {
        long[] dims = new long[4];
        int rank = 0;
        boolean more = JsonFields.enterArray(json, at, "shape");
        for (; more; more = json.nextElement()) {
            InputTensor.checkRank(input, rank + 1);
            if (rank == dims.length) {
                dims = Arrays.copyOf(dims, 2 * rank);
            }
            dims[rank] = JsonFields.readUnsigned(json, number, "shape", rank);
            rank++;
        }
        return rank == dims.length ? dims : Arrays.copyOf(dims, rank);
    }

    private MemorySegment readPayload(String name, int sizeAt) {
        json.moveTo(sizeAt);
        long size = JsonFields.readUnsigned(json, number, "binary_data_size");
        long left = body.byteSize() - payloadOffset;
        if (Long.compareUnsigned(size, left) > 0) {
            throw JsonFields.invalid("unexpected size for input '" + Quoted.text(name) + "', expecting "
                    + Long.toUnsignedString(size - left) + " additional bytes for model '" + Quoted.text(model) + "'");
        }
        MemorySegment bytes = body.asSlice(payloadOffset, size);
        payloadOffset += size;
        payloadCount++;
        return bytes;
    }
}
