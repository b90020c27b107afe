package dev.nereid.backend.onnx.ort;

/** Element types of ONNX Runtime, in the order of the header's {@code ONNXTensorElementDataType}. Immutable. */
public enum OrtElementType {
    UNDEFINED(0, 0),
    FLOAT(1, 32),
    UINT8(2, 8),
    INT8(3, 8),
    UINT16(4, 16),
    INT16(5, 16),
    INT32(6, 32),
    INT64(7, 64),
    STRING(8, 0),
    BOOL(9, 8),
    FLOAT16(10, 16),
    DOUBLE(11, 64),
    UINT32(12, 32),
    UINT64(13, 64),
    COMPLEX64(14, 64),
    COMPLEX128(15, 128),
    BFLOAT16(16, 16),
    FLOAT8E4M3FN(17, 8),
    FLOAT8E4M3FNUZ(18, 8),
    FLOAT8E5M2(19, 8),
    FLOAT8E5M2FNUZ(20, 8),
    UINT4(21, 4),
    INT4(22, 4),
    FLOAT4E2M1(23, 4),
    UINT2(24, 2),
    INT2(25, 2),
    FLOAT8E8M0(26, 8);

    private static final int BITS_PER_BYTE = 8;

    private final int number;
    private final int bits;

    OrtElementType(int number, int bits) {
        this.number = number;
        this.bits = bits;
    }

    /** Returns the type with ONNX Runtime's number {@code number}; {@link #UNDEFINED} for one above this list. */
    static OrtElementType of(int number) {
        OrtElementType[] types = values();
        return number >= 0 && number < types.length ? types[number] : UNDEFINED;
    }

    /** Returns ONNX Runtime's number for the type. */
    int number() {
        return number;
    }

    /** Returns whether elements are contiguous in memory; false for strings and undefined types. */
    boolean hasFixedSize() {
        return bits > 0;
    }

    /** Returns the alignment in bytes that memory of this type needs. */
    long alignment() {
        return Math.max(1, Math.min(bits, Long.SIZE) / BITS_PER_BYTE);
    }

    /**
     * Returns the bytes of a tensor of this type and {@code shape}.
     *
     * @throws IllegalArgumentException if a dimension is negative or the type has no fixed size
     * @throws ArithmeticException if the size exceeds 64 bits
     */
    long byteSize(long... shape) {
        if (!hasFixedSize()) {
            throw new IllegalArgumentException("element type: " + this + " (expected: one of fixed size)");
        }
        long elements = elementCount(shape);
        return bits >= BITS_PER_BYTE
                ? Math.multiplyExact(elements, bits / BITS_PER_BYTE)
                : Math.ceilDiv(elements, BITS_PER_BYTE / bits);
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
