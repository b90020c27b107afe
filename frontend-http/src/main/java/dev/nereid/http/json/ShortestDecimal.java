package dev.nereid.http.json;

import java.math.BigInteger;

/**
 * Finds the shortest decimal that reads back as a float (Schubfach). Reused for one float after another; confined to
 * one event loop.
 *
 * <p>The method is Raffaello Giulietti's ("The Schubfach way to render doubles", 2020): the float and the two midpoints
 * between it and its neighbors are scaled by a power of ten, so that the interval between these midpoints contains at
 * least one whole number and at most one multiple of ten. Scaled numbers have 33 bits after the point, which keeps all
 * comparisons correct, as a test with every float has shown.
 *
 * <p>There are no branches: they would be unpredictable, and a misprediction costs more than unused calculations.
 */
final class ShortestDecimal {
    private static final int FRACTION_BITS = 23;
    private static final int FRACTION = (1 << FRACTION_BITS) - 1;
    /** The power of two above which the exponent of a normal float begins. The significand counts as a whole number. */
    private static final int POWER_OF_TWO_BIAS = -150;

    private static final int MAX_POWER_OF_TEN = 31;
    private static final int MIN_POWER_OF_TEN = -45;

    private static final int POINT = 33;
    private static final long HALF = 1L << (POINT - 1);
    /** Divides numbers of up to nine digits by ten, with 32 bits after the point. */
    private static final long TENTH = 429_496_730L;

    private static final int SCALE_BITS = 63;
    /** The first 63 bits, rounded up, of the inverse of each power of ten. */
    private static final long[] SCALES = new long[MAX_POWER_OF_TEN - MIN_POWER_OF_TEN + 1];

    static {
        for (int power = MIN_POWER_OF_TEN; power <= MAX_POWER_OF_TEN; power++) {
            SCALES[power - MIN_POWER_OF_TEN] = scale(-power);
        }
    }

    private int digits;
    private int power;

    /** Computes the decimal of a normal float that is greater than zero. */
    void of(int bits) {
        int fraction = bits & FRACTION;
        int powerOfTwo = (bits >>> FRACTION_BITS) + POWER_OF_TWO_BIAS;
        // One for a power of two: the next smaller float is half as far away as the next greater one.
        int nearBelow = (fraction - 1) >>> (Integer.SIZE - 1);
        power = log10OfInterval(powerOfTwo, nearBelow);
        long scale = SCALES[power - MIN_POWER_OF_TEN];
        int shift = powerOfTwo + log2OfPowerOfTen(-power) + POINT;
        long quarters = (long) (fraction | (FRACTION + 1)) << 2;
        long value = Math.multiplyHigh(scale, quarters << shift);
        // The midpoints belong to the float if it is even, as ties round to even.
        int odd = fraction & 1;
        long lower = Math.multiplyHigh(scale, (quarters - 2 + nearBelow) << shift) + odd;
        long upper = Math.multiplyHigh(scale, (quarters + 2) << shift) - odd;

        long below = value >>> POINT;
        long nearest = (value + HALF - 1 + (below & 1)) >>> POINT;
        // The nearest number can lie outside only on a shorter side; the next one is then within the other side.
        nearest += oneIfNegative((nearest << POINT) - lower);
        long tens = (((below + 5) * TENTH) >>> Integer.SIZE) * 10;
        long tensOutside = -oneIfNegative(((tens << POINT) - lower) | (upper - (tens << POINT)));
        digits = (int) (tens + ((nearest - tens) & tensOutside));
    }

    /** Returns the digits as one number: seven to nine, less than 200,000,000; they may end in zeros. */
    int digits() {
        return digits;
    }

    /** Returns the power of ten that the digits are multiplied by. */
    int power() {
        return power;
    }

    /** Returns one for a negative number, otherwise zero. */
    private static long oneIfNegative(long number) {
        return number >>> (Long.SIZE - 1);
    }

    private static long scale(int power) {
        BigInteger ten = BigInteger.TEN.pow(Math.abs(power));
        int length = ten.bitLength();
        BigInteger bits;
        if (power >= 0) {
            bits = length > SCALE_BITS ? ten.shiftRight(length - SCALE_BITS) : ten.shiftLeft(SCALE_BITS - length);
        } else {
            bits = BigInteger.ONE.shiftLeft(length + SCALE_BITS - 1).divide(ten);
        }
        return bits.longValueExact() + 1;
    }

    /** Returns a rounded-down decimal logarithm. It is that of two to a power, or of three quarters of it. */
    private static int log10OfInterval(int power, int threeQuarters) {
        return (power * 1_262_611 - (524_031 & -threeQuarters)) >> 22;
    }

    /** Returns the binary logarithm, rounded down, of ten to a power. */
    private static int log2OfPowerOfTen(int power) {
        return (power * 1_741_647) >> 19;
    }
}
