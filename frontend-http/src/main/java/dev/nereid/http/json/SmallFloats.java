package dev.nereid.http.json;

/**
 * Converts between doubles and the 16-bit types FP16 and BF16. Immutable.
 *
 * <p>Rounding is to the nearest, ties to even, and happens once: the intermediate single precision value is rounded to
 * odd, which preserves the information for the final rounding.
 */
final class SmallFloats {
    private static final int BF16_SHIFT = 16;
    private static final int BF16_HALF = 1 << (BF16_SHIFT - 1);
    private static final short BF16_NAN = 0x7FC0;

    private SmallFloats() {}

    /** Returns the half-precision number nearest to a double. */
    static short toFp16(double value) {
        return Float.floatToFloat16(toOddFloat(value));
    }

    /** Returns the half-precision number as a float, which holds it exactly. */
    static float fromFp16(short bits) {
        return Float.float16ToFloat(bits);
    }

    /** Returns the bfloat16 number nearest to a double. */
    static short toBf16(double value) {
        if (Double.isNaN(value)) {
            return BF16_NAN;
        }
        int bits = Float.floatToRawIntBits(toOddFloat(value));
        int lowestKept = bits >>> BF16_SHIFT & 1;
        return (short) ((bits + BF16_HALF - 1 + lowestKept) >>> BF16_SHIFT);
    }

    /** Returns the bfloat16 number as a float, which holds it exactly. */
    static float fromBf16(short bits) {
        return Float.intBitsToFloat(bits << BF16_SHIFT);
    }

    private static float toOddFloat(double value) {
        float nearest = (float) value;
        int bits = Float.floatToRawIntBits(nearest);
        boolean exact = nearest == value || Double.isNaN(value);
        if (exact || (bits & 1) == 1) {
            return nearest;
        }
        boolean shrunk = Math.abs(nearest) < Math.abs(value);
        return Float.intBitsToFloat(shrunk ? bits + 1 : bits - 1);
    }
}
