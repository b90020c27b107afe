package dev.nereid.server.classification;

import dev.nereid.spi.DataType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.math.BigDecimal;
import java.math.RoundingMode;
import java.nio.ByteOrder;
import java.util.Optional;

/**
 * Compares and formats the elements of a data type. Reads memory that others may write meanwhile: then any order will
 * do.
 */
enum Scores {
    INT8 {
        @Override
        long rank(MemorySegment data, long index) {
            return data.get(ValueLayout.JAVA_BYTE, index);
        }
    },
    INT16 {
        @Override
        long rank(MemorySegment data, long index) {
            return data.get(SHORT, index * Short.BYTES);
        }
    },
    INT32 {
        @Override
        long rank(MemorySegment data, long index) {
            return data.get(INT, index * Integer.BYTES);
        }
    },
    INT64 {
        @Override
        long rank(MemorySegment data, long index) {
            return data.get(LONG, index * Long.BYTES);
        }
    },
    UINT8 {
        @Override
        long rank(MemorySegment data, long index) {
            return Byte.toUnsignedLong(data.get(ValueLayout.JAVA_BYTE, index));
        }
    },
    UINT16 {
        @Override
        long rank(MemorySegment data, long index) {
            return Short.toUnsignedLong(data.get(SHORT, index * Short.BYTES));
        }
    },
    UINT32 {
        @Override
        long rank(MemorySegment data, long index) {
            return Integer.toUnsignedLong(data.get(INT, index * Integer.BYTES));
        }
    },
    UINT64 {
        @Override
        long rank(MemorySegment data, long index) {
            return data.get(LONG, index * Long.BYTES) ^ Long.MIN_VALUE;
        }

        @Override
        String text(MemorySegment data, long index) {
            return Long.toUnsignedString(data.get(LONG, index * Long.BYTES));
        }
    },
    FP32 {
        @Override
        long rank(MemorySegment data, long index) {
            return rankOf(data.get(FLOAT, index * Float.BYTES));
        }

        @Override
        String text(MemorySegment data, long index) {
            return format(data.get(FLOAT, index * Float.BYTES));
        }
    },
    FP64 {
        @Override
        long rank(MemorySegment data, long index) {
            return rankOf(data.get(DOUBLE, index * Double.BYTES));
        }

        @Override
        String text(MemorySegment data, long index) {
            return format(data.get(DOUBLE, index * Double.BYTES));
        }
    };

    private static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfInt INT = ValueLayout.JAVA_INT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfLong LONG = ValueLayout.JAVA_LONG_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfDouble DOUBLE =
            ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private static final int DECIMALS = 6;

    /**
     * Finds the comparison of a type's elements. It is empty for types that have no order, or none that clients expect.
     */
    static Optional<Scores> of(DataType type) {
        return switch (type) {
            case INT8 -> Optional.of(INT8);
            case INT16 -> Optional.of(INT16);
            case INT32 -> Optional.of(INT32);
            case INT64 -> Optional.of(INT64);
            case UINT8 -> Optional.of(UINT8);
            case UINT16 -> Optional.of(UINT16);
            case UINT32 -> Optional.of(UINT32);
            case UINT64 -> Optional.of(UINT64);
            case FP32 -> Optional.of(FP32);
            case FP64 -> Optional.of(FP64);
            case BOOL, FP16, BF16, BYTES -> Optional.empty();
        };
    }

    /** Returns a number that is the larger, the larger the element is. */
    abstract long rank(MemorySegment data, long index);

    /** Formats an element as the reference server does: numbers with a fraction have six decimals. */
    String text(MemorySegment data, long index) {
        return Long.toString(rank(data, index));
    }

    /** Ranks numbers by value, both zeros alike, and NaN last. */
    private static long rankOf(double value) {
        if (Double.isNaN(value)) {
            return Long.MIN_VALUE;
        }
        long bits = Double.doubleToRawLongBits(value + 0.0);
        return bits ^ ((bits >> (Long.SIZE - 1)) & Long.MAX_VALUE);
    }

    private static String format(double value) {
        if (Double.isNaN(value)) {
            return "nan";
        }
        String sign = Double.doubleToRawLongBits(value) < 0 ? "-" : "";
        return sign
                + (Double.isInfinite(value)
                        ? "inf"
                        : new BigDecimal(Math.abs(value))
                                .setScale(DECIMALS, RoundingMode.HALF_EVEN)
                                .toPlainString());
    }
}
