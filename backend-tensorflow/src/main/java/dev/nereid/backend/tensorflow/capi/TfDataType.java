package dev.nereid.backend.tensorflow.capi;

import java.util.Locale;

/** Element types of TensorFlow's tensors that the C API names, with their numbers in {@code TF_DataType}. Immutable. */
public enum TfDataType {
    FLOAT(1, 4),
    DOUBLE(2, 8),
    INT32(3, 4),
    UINT8(4, 1),
    INT16(5, 2),
    INT8(6, 1),
    STRING(7, 0),
    COMPLEX64(8, 8),
    INT64(9, 8),
    BOOL(10, 1),
    QINT8(11, 1),
    QUINT8(12, 1),
    QINT32(13, 4),
    BFLOAT16(14, 2),
    QINT16(15, 2),
    QUINT16(16, 2),
    UINT16(17, 2),
    COMPLEX128(18, 16),
    HALF(19, 2),
    RESOURCE(20, 0),
    VARIANT(21, 0),
    UINT32(22, 4),
    UINT64(23, 8),
    FLOAT8_E5M2(24, 1),
    FLOAT8_E4M3FN(25, 1),
    UNKNOWN(0, 0);

    /** Added to a type's number for a reference to a variable of the type; types have lower numbers. */
    static final int REFERENCES = 100;

    private final int number;
    private final int byteSize;

    TfDataType(int number, int byteSize) {
        this.number = number;
        this.byteSize = byteSize;
    }

    /** Returns the type with TensorFlow's number {@code number}, or {@link #UNKNOWN}. A reference counts as its type. */
    public static TfDataType of(int number) {
        int plain = number > REFERENCES ? number - REFERENCES : number;
        for (TfDataType type : values()) {
            if (type.number == plain) {
                return type;
            }
        }
        return UNKNOWN;
    }

    /** Returns TensorFlow's number for the type. */
    int number() {
        return number;
    }

    /** Returns the bytes of an element; 0 if elements have no fixed size. */
    int byteSize() {
        return byteSize;
    }

    /** Returns the name that TensorFlow's messages use, such as {@code DT_FLOAT}. */
    public String text() {
        return "DT_" + name().toUpperCase(Locale.ROOT);
    }

    /**
     * Returns the number of elements of a tensor of {@code shape}. It is 1 for a scalar.
     *
     * @throws IllegalArgumentException if a dimension is negative
     * @throws ArithmeticException if the number exceeds 64 bits
     */
    static long elementCount(long... shape) {
        long count = 1;
        for (long dimension : shape) {
            if (dimension < 0) {
                throw new IllegalArgumentException("dimension: " + dimension + " (expected: >= 0)");
            }
            count = Math.multiplyExact(count, dimension);
        }
        return count;
    }
}
