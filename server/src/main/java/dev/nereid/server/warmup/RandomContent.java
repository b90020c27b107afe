package dev.nereid.server.warmup;

import dev.nereid.spi.DataType;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.ByteOrder;
import java.util.random.RandomGenerator;

/**
 * Fills memory with random elements of a fixed-size data type. Whole numbers use all bits, fractions lie between 0
 * and 1. Static functions only.
 */
final class RandomContent {
    private static final ValueLayout.OfShort SHORT =
            ValueLayout.JAVA_SHORT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfFloat FLOAT =
            ValueLayout.JAVA_FLOAT_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);
    private static final ValueLayout.OfDouble DOUBLE =
            ValueLayout.JAVA_DOUBLE_UNALIGNED.withOrder(ByteOrder.LITTLE_ENDIAN);

    private RandomContent() {}

    /**
     * Fills memory with elements.
     *
     * @param memory as many bytes as the elements take
     * @param type their type, of a fixed size
     */
    static void fill(MemorySegment memory, DataType type, RandomGenerator random) {
        for (long at = 0; at < memory.byteSize(); at += type.byteSize()) {
            switch (type) {
                case FP16 -> memory.set(SHORT, at, Float.floatToFloat16(random.nextFloat()));
                case BF16 -> memory.set(SHORT, at, (short) (Float.floatToIntBits(random.nextFloat()) >>> Short.SIZE));
                case FP32 -> memory.set(FLOAT, at, random.nextFloat());
                case FP64 -> memory.set(DOUBLE, at, random.nextDouble());
                case BOOL -> memory.set(ValueLayout.JAVA_BYTE, at, (byte) random.nextInt(2));
                case UINT8, UINT16, UINT32, UINT64, INT8, INT16, INT32, INT64 -> {
                    byte[] bits = new byte[type.byteSize()];
                    random.nextBytes(bits);
                    MemorySegment.copy(bits, 0, memory, ValueLayout.JAVA_BYTE, at, bits.length);
                }
                case BYTES -> throw new IllegalArgumentException("type: BYTES (expected: elements of a fixed size)");
            }
        }
    }
}
