package dev.nereid.http;

import dev.nereid.api.CallOptions;
import dev.nereid.api.InferenceException;
import dev.nereid.api.InputTensor;
import dev.nereid.api.ModelDescription;
import dev.nereid.spi.DataType;
import dev.nereid.spi.MemoryPlace;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.MemorySegment;
import java.util.List;
import java.util.Map;

/** Reads a body that is nothing but the data of a model's only input. Immutable. */
final class RawRequestReader {
    private static final int BYTES_PREFIX = Integer.BYTES;
    /** What a length of 32 bits without a sign can tell. */
    private static final long LONGEST_STRING = 0xFFFF_FFFFL;

    private final ModelDescription model;

    /** Reads requests for one model. */
    RawRequestReader(ModelDescription model) {
        this.model = model;
    }

    /**
     * Reads a request: a batch of one, whose outputs are all to be written as bytes.
     *
     * @param body the data
     * @param memory where to take memory from
     * @throws InferenceException if the shape cannot be told from the amount of data
     */
    InferRequest read(MemorySegment body, CallMemory memory) {
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
        return new InferRequest("", List.of(tensor), RequestedOutputs.all(true), Map.of(), CallOptions.DEFAULT);
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
        long known = input.type().byteSize();
        for (int i = 0; i < dims.length; i++) {
            if (dims[i] != Shape.VARIABLE) {
                known *= dims[i];
            } else if (variable >= 0) {
                throw invalid("The shape of the raw input '" + input.name()
                        + "' can not be deduced because there are more than one variable-sized dimension");
            } else {
                variable = i;
            }
        }
        if (variable >= 0) {
            dims[variable] = known == 0 ? 0 : byteSize / known;
            known *= dims[variable];
        }
        if (known != byteSize) {
            throw invalid("input byte size mismatch for input 'raw_input' for model '" + model.name() + "'. Expected "
                    + known + ", got " + byteSize);
        }
        return Shape.of(dims);
    }

    private static MemorySegment withPrefix(MemorySegment body, CallMemory memory) {
        long size = body.byteSize();
        if (size > LONGEST_STRING) {
            throw invalid("raw_input: " + size + " bytes (expected: at most " + LONGEST_STRING + " for a string)");
        }
        MemorySegment data = memory.allocate(size + BYTES_PREFIX);
        data.set(LittleEndian.INT, 0, (int) size);
        data.asSlice(BYTES_PREFIX).copyFrom(body);
        return data;
    }

    private static InferenceException invalid(String problem) {
        return JsonFields.invalid(RequestTexts.prefix("") + problem);
    }
}
