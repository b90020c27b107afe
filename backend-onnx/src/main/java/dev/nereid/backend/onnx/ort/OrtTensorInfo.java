package dev.nereid.backend.onnx.ort;

import java.util.List;

/**
 * Metadata of one input or output of a model. Immutable.
 *
 * @param kind the kind of value; only tensors can be passed to {@link OrtExecution}
 * @param type the element type of a tensor, {@link OrtElementType#UNDEFINED} for anything else
 * @param hasShape whether the model declares the number of dimensions
 * @param dims the dimensions, -1 where the model leaves one open; empty for a scalar, and where {@code hasShape} is
 *     false
 * @param symbols the model's name of each open dimension, empty if unnamed; as long as {@code dims}
 */
public record OrtTensorInfo(
        String name, Kind kind, OrtElementType type, boolean hasShape, List<Long> dims, List<String> symbols) {
    /** Kinds of values, in the order of the header's {@code ONNXType}. */
    public enum Kind {
        UNKNOWN,
        TENSOR,
        SEQUENCE,
        MAP,
        OPAQUE,
        SPARSE_TENSOR,
        OPTIONAL;

        /** Returns the kind with ONNX Runtime's number {@code number}; {@link #UNKNOWN} for one above this list. */
        static Kind of(int number) {
            Kind[] kinds = values();
            return number >= 0 && number < kinds.length ? kinds[number] : UNKNOWN;
        }
    }

    public OrtTensorInfo {
        dims = List.copyOf(dims);
        symbols = List.copyOf(symbols);
        if (symbols.size() != dims.size()) {
            throw new IllegalArgumentException("symbols: " + symbols + " (expected: one for each of " + dims + ")");
        }
    }

    static OrtTensorInfo ofOther(String name, Kind kind) {
        return new OrtTensorInfo(name, kind, OrtElementType.UNDEFINED, false, List.of(), List.of());
    }
}
