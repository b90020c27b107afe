package dev.nereid.http.infer;

import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelMetadata;
import dev.nereid.api.Quoted;
import dev.nereid.api.RequestOptions;
import dev.nereid.http.body.RequestMemory;
import dev.nereid.http.json.JsonFields;
import dev.nereid.http.json.LittleEndian;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;

/** Reads a raw request: a body that holds the only input's data. Immutable. */
final class RawRequestReader {
    private static final int BYTES_PREFIX = Integer.BYTES;
    /** The maximum of an unsigned 32-bit length. */
    private static final long MAX_STRING_BYTES = 0xFFFF_FFFFL;

    private final ModelMetadata model;

    RawRequestReader(ModelMetadata model) {
        this.model = model;
    }

    /**
     * Reads a request: a batch of one, with all outputs in binary format.
     *
     * @param memory the memory of a copy
     * @throws InferenceException if the shape cannot be deduced from the amount of data
     */
    InferRequestBody read(MemorySegment body, RequestMemory memory) {
        if (model.inputs().size() != 1) {
            throw invalid("Raw request must only have 1 input (found 1) to be deduced but got "
                    + model.inputs().size() + " inputs in '" + model.name() + "' model configuration");
        }
        TensorSpec input = model.inputs().getFirst();
        boolean strings = input.type() == DataType.BYTES;
        Shape item = strings ? oneString(input) : deduce(input, body.byteSize());
        Shape shape = model.maxBatchSize() > 0 ? item.prepend(1) : item;
        MemorySegment data = strings ? withPrefix(body, memory) : body;
        InputTensor tensor = InputTensor.of(input.name(), input.type().name(), shape.toArray(), data, MemoryPlace.HOST);
        return new InferRequestBody(
                "", List.of(tensor), RequestedOutputs.all(true), Map.of(), RequestOptions.DEFAULT, null);
    }

    private static Shape oneString(TensorSpec input) {
        if (input.dims().rank() != 1 || input.dims().dim(0) != 1) {
            throw invalid("For BYTE datatype raw input '" + input.name() + "', the model must have input shape [1]");
        }
        return input.dims();
    }

    private Shape deduce(TensorSpec input, long byteSize) {
        long[] dims = input.dims().toArray();
        int variable = -1;
        long size = input.type().byteSize();
        for (int i = 0; i < dims.length; i++) {
            if (dims[i] != Shape.VARIABLE) {
                size *= dims[i];
            } else if (variable >= 0) {
                throw invalid("The shape of the raw input '" + input.name()
                        + "' can not be deduced because there are more than one variable-sized dimension");
            } else {
                variable = i;
            }
        }
        if (variable >= 0) {
            dims[variable] = size == 0 ? 0 : byteSize / size;
            size *= dims[variable];
        }
        if (size != byteSize) {
            throw invalid("input byte size mismatch for input 'raw_input' for model '" + model.name() + "'. Expected "
                    + size + ", got " + byteSize);
        }
        return Shape.of(dims);
    }

    private static MemorySegment withPrefix(MemorySegment body, RequestMemory memory) {
        long size = body.byteSize();
        if (size > MAX_STRING_BYTES) {
            throw invalid("raw_input: " + size + " bytes (expected: at most " + MAX_STRING_BYTES + " for a string)");
        }
        MemorySegment data = memory.allocate(size + BYTES_PREFIX);
        data.set(LittleEndian.INT, 0, (int) size);
        data.asSlice(BYTES_PREFIX).copyFrom(body);
        return data;
    }

    private static InferenceException invalid(String problem) {
        return JsonFields.invalid(Quoted.requestPrefix("") + problem);
    }
}
