package dev.nereid.server.memory;

/**
 * The sizes of pooled buffers, in steps of at most a quarter. The first are 64, 128, 192 and 256 bytes, then four to
 * each power of two.
 */
final class SizeClasses {
    /** The alignment of every buffer, in bytes: a cache line, and the widest vector register. */
    static final long ALIGNMENT = 64;

    /** Sizes up to here grow by {@link #ALIGNMENT}. Beyond, a quarter of a power of two is a multiple of it. */
    private static final int LINEAR_LOG = 8;

    private static final int LINEAR_CLASSES = 4;
    private static final int STEPS_LOG = 2;

    private SizeClasses() {}

    /** Returns the index of the smallest class that holds {@code byteSize} bytes. */
    static int indexOf(long byteSize) {
        if (byteSize <= 1L << LINEAR_LOG) {
            return (int) (Math.max(byteSize - 1, 0) / ALIGNMENT);
        }
        long last = byteSize - 1;
        int log = 63 - Long.numberOfLeadingZeros(last);
        int step = (int) (last >>> (log - STEPS_LOG)) & ((1 << STEPS_LOG) - 1);
        return LINEAR_CLASSES + ((log - LINEAR_LOG) << STEPS_LOG) + step;
    }

    /** Returns the size of the buffers of a class, in bytes. */
    static long sizeOf(int index) {
        if (index < LINEAR_CLASSES) {
            return (index + 1) * ALIGNMENT;
        }
        int log = LINEAR_LOG + ((index - LINEAR_CLASSES) >> STEPS_LOG);
        long step = ((index - LINEAR_CLASSES) & ((1 << STEPS_LOG) - 1)) + 1L;
        return (1L << log) + (step << (log - STEPS_LOG));
    }
}
