package dev.nereid.backend.tensorrt;

import dev.nereid.backend.tensorrt.runtime.EngineTensor;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;

/** Types of elements of engines and of the server. Static functions only. */
final class EngineTypes {
    private EngineTypes() {}

    /**
     * Returns the server's type of a tensor, 8-bit floats as bytes; throws a {@link BackendException} if there is none.
     */
    static DataType of(EngineTensor tensor) {
        return switch (tensor.type()) {
            case "kFLOAT" -> DataType.FP32;
            case "kHALF" -> DataType.FP16;
            case "kBF16" -> DataType.BF16;
            case "kINT8" -> DataType.INT8;
            case "kUINT8", "kFP8", "kE8M0" -> DataType.UINT8;
            case "kINT32" -> DataType.INT32;
            case "kINT64" -> DataType.INT64;
            case "kBOOL" -> DataType.BOOL;
            default ->
                throw TensorRtErrors.unsupported("tensor '" + tensor.name() + "': type " + tensor.type()
                        + " (expected: a type of at least 8 bits)");
        };
    }
}
