package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.onnx.ort.OrtElementType;
import dev.nereid.backend.onnx.ort.OrtTensorInfo;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Shape;
import java.util.List;
import java.util.Optional;

/** Maps ONNX Runtime's element types and shapes to data types and shapes of the SPI. Stateless. */
final class OnnxTensors {
    private OnnxTensors() {}

    /** Returns the data type of an element type. It is empty if the protocols have none for it. */
    static Optional<DataType> dataType(OrtElementType type) {
        return Optional.ofNullable(
                switch (type) {
                    case BOOL -> DataType.BOOL;
                    case UINT8 -> DataType.UINT8;
                    case UINT16 -> DataType.UINT16;
                    case UINT32 -> DataType.UINT32;
                    case UINT64 -> DataType.UINT64;
                    case INT8 -> DataType.INT8;
                    case INT16 -> DataType.INT16;
                    case INT32 -> DataType.INT32;
                    case INT64 -> DataType.INT64;
                    case FLOAT16 -> DataType.FP16;
                    case FLOAT -> DataType.FP32;
                    case DOUBLE -> DataType.FP64;
                    case STRING -> DataType.BYTES;
                    case BFLOAT16 -> DataType.BF16;
                    case UNDEFINED,
                            COMPLEX64,
                            COMPLEX128,
                            FLOAT8E4M3FN,
                            FLOAT8E4M3FNUZ,
                            FLOAT8E5M2,
                            FLOAT8E5M2FNUZ,
                            FLOAT8E8M0,
                            UINT4,
                            INT4,
                            FLOAT4E2M1,
                            UINT2,
                            INT2 -> null;
                });
    }

    /** Refuses, as {@link ErrorCode#UNSUPPORTED}, inputs and outputs that are no tensors, even if not configured. */
    static void requireTensors(List<OrtTensorInfo> infos) {
        for (OrtTensorInfo info : infos) {
            if (info.kind() != OrtTensorInfo.Kind.TENSOR) {
                throw new BackendException(
                        ErrorCode.UNSUPPORTED,
                        "Unsupported ONNX Type '" + kindName(info.kind()) + "' for I/O '" + info.name()
                                + "', expected 'ONNX_TYPE_TENSOR'.");
            }
        }
    }

    /**
     * Returns the data type of a model's input or output.
     *
     * @param role the tensor's role in the error text: {@code input} or {@code output}
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if its type has no name on the wire
     */
    static DataType dataType(OrtTensorInfo info, String role) {
        return dataType(info.type())
                .orElseThrow(() -> ModelErrors.invalid("model " + role + " '" + info.name()
                        + "' must specify 'data_type' (expected: a type of the protocol; the model has " + info.type()
                        + ")"));
    }

    /** Returns the dimensions of an input or output. There are none where the model does not declare their number. */
    static Shape shape(OrtTensorInfo info) {
        return Shape.of(info.dims().stream().mapToLong(Long::longValue).toArray());
    }

    private static String kindName(OrtTensorInfo.Kind kind) {
        return switch (kind) {
            case UNKNOWN, OPTIONAL -> "ONNX_TYPE_UNKNOWN";
            case TENSOR -> "ONNX_TYPE_TENSOR";
            case SEQUENCE -> "ONNX_TYPE_SEQUENCE";
            case MAP -> "ONNX_TYPE_MAP";
            case OPAQUE -> "ONNX_TYPE_OPAQUE";
            case SPARSE_TENSOR -> "ONNX_TYPE_SPARSETENSOR";
        };
    }
}
