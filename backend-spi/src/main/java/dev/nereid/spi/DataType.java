package dev.nereid.spi;

import java.util.Optional;

/**
 * The element types of a tensor, named as on the wire. Immutable.
 *
 * <p>Elements lie in row-major order, little-endian, without padding. Open: later versions may add constants.
 *
 * @since 1.0
 */
public enum DataType {
    /** One byte an element; 0 is false, everything else true. */
    BOOL(1),
    /** Unsigned 8-bit integer. */
    UINT8(1),
    /** Unsigned 16-bit integer. */
    UINT16(2),
    /** Unsigned 32-bit integer. */
    UINT32(4),
    /** Unsigned 64-bit integer. */
    UINT64(8),
    /** Signed 8-bit integer. */
    INT8(1),
    /** Signed 16-bit integer. */
    INT16(2),
    /** Signed 32-bit integer. */
    INT32(4),
    /** Signed 64-bit integer. */
    INT64(8),
    /** IEEE 754 half precision. */
    FP16(2),
    /** IEEE 754 single precision. */
    FP32(4),
    /** IEEE 754 double precision. */
    FP64(8),
    /** Byte strings of any content: each a 4-byte little-endian unsigned length, then that many bytes. */
    BYTES(0),
    /** The upper half of a single-precision number: 8 bits of exponent, 7 of fraction. */
    BF16(2);

    private static final String CONFIG_PREFIX = "TYPE_";

    private final int byteSize;

    DataType(int byteSize) {
        this.byteSize = byteSize;
    }

    /**
     * Returns the size of one element.
     *
     * @return the size in bytes, or 0 for {@link #BYTES}, as its elements differ in size
     */
    public int byteSize() {
        return byteSize;
    }

    /**
     * Says whether every element has the same size.
     *
     * @return {@code false} for {@link #BYTES} only
     */
    public boolean isFixedSize() {
        return byteSize != 0;
    }

    /**
     * Returns the name that model configurations use.
     *
     * @return for instance {@code TYPE_FP32}; {@code TYPE_STRING} for {@link #BYTES}
     */
    public String configName() {
        return this == BYTES ? CONFIG_PREFIX + "STRING" : CONFIG_PREFIX + name();
    }

    /**
     * Finds the type of a name as used on the wire.
     *
     * @param name for instance {@code FP32}; case matters
     * @return the type, or empty if there is none of that name
     */
    public static Optional<DataType> ofName(String name) {
        for (DataType type : VALUES) {
            if (type.name().equals(name)) {
                return type.found;
            }
        }
        return Optional.empty();
    }

    private static final DataType[] VALUES = values();

    private final Optional<DataType> found = Optional.of(this);
}
