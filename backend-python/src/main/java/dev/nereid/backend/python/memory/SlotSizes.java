package dev.nereid.backend.python.memory;

/**
 * Sizes of slots: powers of two from 4096 bytes to 1 MiB, and above also three steps between two of them, so that at most a
 * fifth of a large slot is unused.
 */
final class SlotSizes {
    static final long SMALLEST = 4096;
    static final long LARGEST = 1L << 46;

    static final int CLASSES = 9 + 4 * (46 - 20);

    private static final int SMALLEST_BITS = 12;
    private static final int STEPPED_BITS = 20;

    private SlotSizes() {}

    /** Returns the size of the slot for a tensor of 1 to {@link #LARGEST} bytes. */
    static long of(long byteSize) {
        if (byteSize <= SMALLEST) {
            return SMALLEST;
        }
        int bits = bits(byteSize);
        long step = bits <= STEPPED_BITS ? 1L << bits : 1L << (bits - 3);
        return byteSize + step - 1 & -step;
    }

    static boolean isSlotSize(long slotSize) {
        return slotSize >= SMALLEST && slotSize <= LARGEST && of(slotSize) == slotSize;
    }

    /** Returns the number of a size of slots among all of them, from 0 on. */
    static int classOf(long slotSize) {
        int bits = bits(slotSize);
        if (bits <= STEPPED_BITS) {
            return bits - SMALLEST_BITS;
        }
        int quarter = (int) (slotSize >> (bits - 3)) - 4;
        return STEPPED_BITS - SMALLEST_BITS + 4 * (bits - 1 - STEPPED_BITS) + quarter;
    }

    /** Returns the exponent of the smallest power of two that is not less than a value. */
    private static int bits(long value) {
        return Long.SIZE - Long.numberOfLeadingZeros(value - 1);
    }
}
