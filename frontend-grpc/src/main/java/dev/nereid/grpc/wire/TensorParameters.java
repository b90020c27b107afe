package dev.nereid.grpc.wire;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.memory.SharedMemory;
import dev.nereid.api.memory.TensorBuffer;
import dev.nereid.api.parameter.ParameterValue;
import dev.nereid.spi.ErrorCode;
import java.util.Map;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/** Reads the parameters of inputs and outputs. Immutable. */
final class TensorParameters {
    private static final String REGION = "shared_memory_region";
    private static final String OFFSET = "shared_memory_offset";
    private static final String BYTE_SIZE = "shared_memory_byte_size";
    private static final String CLASSIFICATION = "classification";

    private TensorParameters() {}

    /**
     * A part of a shared memory region. Immutable.
     *
     * @param name the client's name for the region
     * @param offset where the part begins in the region; unsigned
     * @param byteSize the size of the part; unsigned
     */
    record Region(String name, long offset, long byteSize) {
        /** Leases the part; owned by the caller. */
        TensorBuffer lease(SharedMemory memory) {
            return memory.lease(name, offset, byteSize);
        }
    }

    /**
     * Finds the shared memory region of a tensor. The tensor lies in it or is to be written to it.
     *
     * @param tensor the name of the tensor, for errors
     * @return the part of the region, or empty if the tensor is not in shared memory
     * @throws InferenceException if the parameters contradict each other or have values of the wrong type
     */
    static Optional<Region> region(String tensor, Map<String, WireParameter> parameters) {
        WireParameter region = parameters.get(REGION);
        long offset = number(tensor, OFFSET, parameters.get(OFFSET), region != null);
        long byteSize = number(tensor, BYTE_SIZE, parameters.get(BYTE_SIZE), region != null);
        if (region == null) {
            return Optional.empty();
        }
        if (!(region instanceof WireParameter.Value(ParameterValue.Text(String name)))) {
            throw invalid("invalid value type for '" + REGION + "' parameter for tensor '" + Quoted.text(tensor)
                    + "', expected string_param.");
        }
        if (!parameters.containsKey(BYTE_SIZE)) {
            throw invalid("'" + BYTE_SIZE + "' must be specified along with '" + REGION + "' parameter for tensor '"
                    + Quoted.text(tensor) + "'");
        }
        return Optional.of(new Region(name, offset, byteSize));
    }

    /**
     * Reads the number of classes that a client requests instead of an output.
     *
     * @return the number; 0 if the client requests the output itself
     * @throws InferenceException if the value is no integer, or too small
     */
    static long classes(Map<String, WireParameter> parameters) {
        WireParameter count = parameters.get(CLASSIFICATION);
        if (count == null) {
            return 0;
        }
        if (!(count instanceof WireParameter.Value(ParameterValue.Int(long classes)))) {
            throw invalid("invalid value type for '" + CLASSIFICATION + "' parameter, expected int64_param");
        }
        if (classes <= 0) {
            throw invalid("invalid value for '" + CLASSIFICATION + "' parameter, expected >= 0");
        }
        return classes;
    }

    private static long number(String tensor, String name, @Nullable WireParameter value, boolean hasRegion) {
        if (value == null) {
            return 0;
        }
        if (!hasRegion) {
            throw invalid("'" + name + "' can not be specified without '" + REGION + "' parameter for tensor '"
                    + Quoted.text(tensor) + "'");
        }
        if (!(value instanceof WireParameter.Value(ParameterValue.Int(long number)))) {
            throw invalid("invalid value type for '" + name + "' parameter for tensor '" + Quoted.text(tensor)
                    + "', expected int64_param.");
        }
        return number;
    }

    private static InferenceException invalid(String text) {
        return new InferenceException(ErrorCode.INVALID_ARGUMENT, text);
    }
}
