package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.tensorflow.capi.TfDataType;
import dev.nereid.backend.tensorflow.graph.GraphTensor;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.Shape;
import java.util.Optional;

/** Maps TensorFlow's data types and shapes to types of the SPI. Stateless. */
final class TensorFlowTensors {
    private TensorFlowTensors() {}

    /** Returns the data type of the SPI. It is empty if the protocols have none for it. */
    static Optional<DataType> dataType(TfDataType type) {
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
                    case HALF -> DataType.FP16;
                    case FLOAT -> DataType.FP32;
                    case DOUBLE -> DataType.FP64;
                    case STRING -> DataType.BYTES;
                    case BFLOAT16 -> DataType.BF16;
                    case COMPLEX64,
                            COMPLEX128,
                            QINT8,
                            QUINT8,
                            QINT16,
                            QUINT16,
                            QINT32,
                            RESOURCE,
                            VARIANT,
                            FLOAT8_E5M2,
                            FLOAT8_E4M3FN,
                            UNKNOWN -> null;
                });
    }

    /**
     * Returns the data type of a model's input or output.
     *
     * @param role the tensor's role in the error text: {@code input} or {@code output}
     * @throws BackendException if its type has no name on the wire, or it is no dense tensor
     */
    static DataType dataType(GraphTensor tensor, String role, String model) {
        if (!tensor.isDense()) {
            throw ModelErrors.cannotLoad(
                    model, role + " '" + tensor.name() + "': a sparse or composite tensor (expected: a dense tensor)");
        }
        Optional<DataType> type = dataType(tensor.type());
        if (type.isEmpty()) {
            throw ModelErrors.cannotLoad(
                    model,
                    role + " '" + tensor.name() + "': data type "
                            + tensor.type().text() + " (expected: a type of the protocol)");
        }
        return type.get();
    }

    /** Returns the dimensions of an input or output, if their number is known. */
    static Optional<Shape> shape(GraphTensor tensor) {
        return tensor.shape().map(Shape::of);
    }
}
