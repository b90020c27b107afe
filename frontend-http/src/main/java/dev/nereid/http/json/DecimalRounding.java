package dev.nereid.http.json;

import java.math.BigInteger;

/**
 * Rounds a decimal number to the nearest float or double (Eisel-Lemire). Immutable.
 *
 * <p>The method is that of Eisel and Lemire (D. Lemire, "Number Parsing at a Gigabyte per Second", 2021): the product
 * with the first 128 bits of the power of five determines the result. These bits are enough for every number (N.
 * Mushtak, D. Lemire, "Fast Number Parsing Without Fallback", 2023).
 */
final class DecimalRounding {
    /**
     * A binary format. Immutable.
     *
     * @param precision bits of the significand, without the leading one
     * @param infinity the biased exponent of infinity
     * @param minPower numbers times smaller powers of ten are zero
     * @param maxPower numbers times larger powers of ten are infinite
     * @param minTiePower no number times a smaller power of ten lies halfway between two neighbors
     * @param maxTiePower no number times a larger power of ten does
     */
    private record Format(int precision, int infinity, int minPower, int maxPower, int minTiePower, int maxTiePower) {
        int bias() {
            return infinity >> 1;
        }
    }

    private static final Format FLOAT = new Format(23, 0xFF, -64, 38, -17, 10);
    private static final Format DOUBLE = new Format(52, 0x7FF, -342, 308, -4, 23);
    /** The smallest power of five that is the inverse of a 64-bit number. */
    private static final int MIN_INVERSE_POWER = -27;

    private static final long[] HIGH = new long[DOUBLE.maxPower - DOUBLE.minPower + 1];
    private static final long[] LOW = new long[HIGH.length];

    static {
        for (int power = DOUBLE.minPower; power <= DOUBLE.maxPower; power++) {
            BigInteger bits = powerOfFive(power);
            HIGH[power - DOUBLE.minPower] = bits.shiftRight(Long.SIZE).longValue();
            LOW[power - DOUBLE.minPower] = bits.longValue();
        }
    }

    private DecimalRounding() {}

    /** Returns the nearest float to unsigned digits times a power of ten. */
    static float toFloat(long digits, int power) {
        return Float.intBitsToFloat((int) bits(digits, power, FLOAT));
    }

    /** Returns the nearest double to unsigned digits times a power of ten. */
    static double toDouble(long digits, int power) {
        return Double.longBitsToDouble(bits(digits, power, DOUBLE));
    }

    /** Returns a power of five's first 128 bits. The inverse of a short one is rounded up, as the proof requires. */
    private static BigInteger powerOfFive(int power) {
        BigInteger five = BigInteger.valueOf(5).pow(Math.abs(power));
        int length = five.bitLength();
        if (power >= 0) {
            return length > 2 * Long.SIZE
                    ? five.shiftRight(length - 2 * Long.SIZE)
                    : five.shiftLeft(2 * Long.SIZE - length);
        }
        BigInteger inverse =
                BigInteger.ONE.shiftLeft(length + (2 * Long.SIZE) - 1).divide(five);
        return power >= MIN_INVERSE_POWER ? inverse.add(BigInteger.ONE) : inverse;
    }

    private static long bits(long digits, int power, Format format) {
        if (digits == 0 || power < format.minPower) {
            return 0;
        }
        long infinite = (long) format.infinity << format.precision;
        if (power > format.maxPower) {
            return infinite;
        }
        int zeros = Long.numberOfLeadingZeros(digits);
        long factor = digits << zeros;
        int index = power - DOUBLE.minPower;
        long high = Math.unsignedMultiplyHigh(factor, HIGH[index]);
        long low = factor * HIGH[index];
        long ambiguous = -1L >>> (format.precision + 3);
        if ((high & ambiguous) == ambiguous) {
            long carry = Math.unsignedMultiplyHigh(factor, LOW[index]);
            low += carry;
            high += Long.compareUnsigned(low, carry) < 0 ? 1 : 0;
        }
        int upper = (int) (high >>> (Long.SIZE - 1));
        int shift = upper + Long.SIZE - format.precision - 3;
        // One bit more than the significand has, for rounding.
        long significand = high >>> shift;
        int exponent = binaryExponent(power) + upper - zeros + format.bias();
        if (exponent <= 0) {
            return subnormal(significand, exponent);
        }
        boolean tie = Long.compareUnsigned(low, 1) <= 0
                && power >= format.minTiePower
                && power <= format.maxTiePower
                && (significand & 3) == 1
                && (significand << shift) == high;
        if (exponent >= format.infinity) {
            return infinite;
        }
        significand = (significand + (tie ? 0 : significand & 1)) >>> 1;
        // A significand rounded up to the next power of two carries into the exponent correctly.
        return (((long) exponent - 1) << format.precision) + significand;
    }

    private static long subnormal(long significand, int exponent) {
        if (exponent <= -Long.SIZE + 1) {
            return 0;
        }
        long kept = significand >>> (1 - exponent);
        // Rounding up to the smallest normal number yields the bits of that number.
        return (kept + (kept & 1)) >>> 1;
    }

    /** Returns the exponent of the highest bit of a power of ten, plus 63. */
    private static int binaryExponent(int power) {
        return ((217_706 * power) >> 16) + Long.SIZE - 1;
    }
}
