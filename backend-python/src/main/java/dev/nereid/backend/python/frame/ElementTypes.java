package dev.nereid.backend.python.frame;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.DataType;
import java.util.EnumMap;
import java.util.Map;

/** Numbers of data types in frames. Static functions only. */
final class ElementTypes {
    private static final DataType[] TYPES = {
        DataType.BOOL,
        DataType.UINT8,
        DataType.UINT16,
        DataType.UINT32,
        DataType.UINT64,
        DataType.INT8,
        DataType.INT16,
        DataType.INT32,
        DataType.INT64,
        DataType.FP16,
        DataType.FP32,
        DataType.FP64,
        DataType.BYTES,
        DataType.BF16
    };

    private static final Map<DataType, Integer> NUMBERS = new EnumMap<>(DataType.class);

    static {
        for (int i = 0; i < TYPES.length; i++) {
            NUMBERS.put(TYPES[i], i + 1);
        }
    }

    private ElementTypes() {}

    static int number(DataType type) {
        return requireNonNull(NUMBERS.get(type), "type");
    }

    /** Returns the type of a number. A {@link FrameException} names the value {@code what} if there is none. */
    static DataType type(String what, int number) {
        if (number < 1 || number > TYPES.length) {
            throw new FrameException(what + ": data type " + number + " (expected: 1 to " + TYPES.length + ")");
        }
        return TYPES[number - 1];
    }
}
