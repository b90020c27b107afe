package dev.nereid.http.json;

import java.lang.foreign.MemorySegment;
import java.nio.charset.StandardCharsets;

/** Writes floats as the shortest JSON numbers. Confined to one event loop. */
final class JsonFloats {
    /** The maximum number of floats to write at once. */
    static final int MAX_COUNT = 256;
    /** The space that any float and a comma need. */
    static final int MAX_BYTES = JsonDecimals.MAX_BYTES + 1;

    private static final int MIN_NORMAL = Float.floatToRawIntBits(Float.MIN_NORMAL);
    private static final int INFINITE = Float.floatToRawIntBits(Float.POSITIVE_INFINITY);

    private final ShortestDecimal shortest = new ShortestDecimal();
    /** A copy of the floats, which may lie in any memory. */
    private final float[] block = new float[MAX_COUNT];

    /**
     * Writes floats, with a comma behind each.
     *
     * @param first the index of the first one to write
     * @param count the number of floats, at most {@link #MAX_COUNT}
     * @param target the target, with {@link #MAX_BYTES} writable bytes for each
     * @param from the index at which to begin
     * @return the index after the last comma
     */
    int write(MemorySegment values, long first, int count, byte[] target, int from) {
        MemorySegment.copy(values, LittleEndian.FLOAT, first * Float.BYTES, block, 0, count);
        int at = from;
        for (int i = 0; i < count; i++) {
            at = write(block[i], target, at);
            target[at++] = ',';
        }
        return at;
    }

    /** Writes a float at an index with {@link #MAX_BYTES} writable bytes; returns the index after it. */
    int write(float value, byte[] target, int from) {
        int bits = Float.floatToRawIntBits(value);
        int magnitude = bits & Integer.MAX_VALUE;
        target[from] = '-';
        int first = from + (bits >>> (Integer.SIZE - 1));
        if (magnitude >= MIN_NORMAL && magnitude < INFINITE) {
            shortest.of(magnitude);
            return JsonDecimals.write(shortest.digits(), shortest.power(), target, first);
        } else if (magnitude == 0) {
            DigitChunk.writeZeros(target, first);
            target[first + 1] = '.';
            return first + 3;
        }
        return writeUnusual(value, target, from);
    }

    /** Writes a subnormal number, an infinity or NaN. */
    private static int writeUnusual(float value, byte[] target, int from) {
        StringBuilder number = new StringBuilder().append(value);
        JsonDecimals.restyle(number);
        byte[] text = number.toString().getBytes(StandardCharsets.US_ASCII);
        System.arraycopy(text, 0, target, from, text.length);
        return from + text.length;
    }
}
