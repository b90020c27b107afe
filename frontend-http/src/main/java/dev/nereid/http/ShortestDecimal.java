package dev.nereid.http;

import java.math.BigInteger;

/**
 * The shortest decimal number that reads back as a float, and of several such the nearest: the digits that {@link
 * Float#toString(float)} shows. Reused for one float after another; confined to one event loop.
 *
 * <p>The method is Raffaello Giulietti's ("The Schubfach way to render doubles", 2020): the float and the two middles
 * between it and its neighbors are scaled by a power of ten, so that of four candidates, two of them shorter, the right
 * one is found by comparing. The scaled values are cut off to quarters, and to odd ones where something was lost, which
 * keeps all comparisons right.
 */
final class ShortestDecimal {
    private static final int FRACTION_BITS = 23;
    private static final int FRACTION = (1 << FRACTION_BITS) - 1;
    private static final int EXPONENT = 0xFF;
    private static final int LEAST_POWER_OF_TWO = -149;
    private static final int MOST_POWER_OF_TEN = 31;
    private static final int LEAST_POWER_OF_TEN = -45;
    /** Smaller multiples of the smallest float would get one digit only, where two are nearer. */
    private static final int TINY = 8;

    private static final int SCALE_BITS = 63;
    private static final long LOW_HALF = 0xFFFF_FFFFL;
    /** The first 63 bits, rounded up, of the inverse of each power of ten. */
    private static final long[] SCALES = new long[MOST_POWER_OF_TEN - LEAST_POWER_OF_TEN + 1];

    static {
        for (int power = LEAST_POWER_OF_TEN; power <= MOST_POWER_OF_TEN; power++) {
            SCALES[power - LEAST_POWER_OF_TEN] = scale(-power);
        }
    }

    private int digits;
    private int power;

    /** Sets the decimal number to that of a finite float that is greater than zero. */
    void of(float value) {
        int bits = Float.floatToRawIntBits(value);
        int fraction = bits & FRACTION;
        int exponent = (bits >>> FRACTION_BITS) & EXPONENT;
        if (exponent > 0) {
            setNormal(fraction, exponent);
        } else if (fraction < TINY) {
            set(10 * fraction, LEAST_POWER_OF_TWO, false);
            power--;
        } else {
            set(fraction, LEAST_POWER_OF_TWO, false);
        }
        dropZeros();
    }

    /** Returns the digits as one number, which does not end in zero. */
    int digits() {
        return digits;
    }

    /** Returns by what power of ten the digits are to be multiplied. */
    int power() {
        return power;
    }

    private void setNormal(int fraction, int exponent) {
        int significand = fraction | (FRACTION + 1);
        int powerOfTwo = LEAST_POWER_OF_TWO - 1 + exponent;
        if (powerOfTwo < 0 && powerOfTwo > -FRACTION_BITS - 1 && (significand & ((1 << -powerOfTwo) - 1)) == 0) {
            // A whole number that a float tells from its neighbors.
            digits = significand >> -powerOfTwo;
            power = 0;
        } else {
            set(significand, powerOfTwo, fraction == 0 && exponent > 1);
        }
    }

    /**
     * Finds the decimal number of a float.
     *
     * @param significand its significand
     * @param powerOfTwo by what power of two it is multiplied
     * @param nearBelow whether the next smaller float is half as far away as the next greater one
     */
    private void set(int significand, int powerOfTwo, boolean nearBelow) {
        power = nearBelow ? log10OfThreeQuarters(powerOfTwo) : log10OfPowerOfTwo(powerOfTwo);
        long scale = SCALES[power - LEAST_POWER_OF_TEN];
        int shift = powerOfTwo + log2OfPowerOfTen(-power) + 33;
        long quarters = 4L * significand;
        int value = scaled(scale, quarters << shift);
        // The middles belong to the float if it is even, as ties go to the even one.
        int odd = significand & 1;
        int least = scaled(scale, (quarters - (nearBelow ? 1 : 2)) << shift) + odd;
        int most = scaled(scale, (quarters + 2) << shift) - odd;
        int below = value >> 2;
        if (below >= 100) {
            int tens = below / 10 * 10;
            boolean down = least <= (tens << 2);
            boolean up = ((tens + 10) << 2) <= most;
            if (down != up) {
                digits = down ? tens : tens + 10;
                return;
            }
        }
        boolean down = least <= (below << 2);
        boolean up = ((below + 1) << 2) <= most;
        if (down != up) {
            digits = down ? below : below + 1;
            return;
        }
        int fromMiddle = value - ((2 * below + 1) << 1);
        digits = fromMiddle < 0 || (fromMiddle == 0 && (below & 1) == 0) ? below : below + 1;
    }

    private void dropZeros() {
        for (int rest = digits / 10; rest * 10 == digits; rest = digits / 10) {
            digits = rest;
            power++;
        }
    }

    /** Multiplies, and cuts the product off to quarters, which become odd if anything was lost. */
    private static int scaled(long scale, long factor) {
        long product = Math.multiplyHigh(scale, factor);
        return (int) ((product >>> 31) | (((product & LOW_HALF) + LOW_HALF) >>> 32));
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

    /** The logarithm, rounded down, of two to a power. */
    private static int log10OfPowerOfTwo(int power) {
        return (power * 1_262_611) >> 22;
    }

    /** The logarithm, rounded down, of three quarters of two to a power. */
    private static int log10OfThreeQuarters(int power) {
        return (power * 1_262_611 - 524_031) >> 22;
    }

    /** The logarithm to the base of two, rounded down, of ten to a power. */
    private static int log2OfPowerOfTen(int power) {
        return (power * 1_741_647) >> 19;
    }
}
