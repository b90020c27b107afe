package dev.nereid.http.json;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Reads and writes decimal digits eight at a time. Immutable. */
final class DigitChunk {
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long EVERY_BYTE = 0x0101_0101_0101_0101L;
    /** The summand that marks bytes above nine: added to a byte of seven bits, it sets the highest bit. */
    private static final long ABOVE_NINE = EVERY_BYTE * (0x80 - 10);

    /** The maximum length of a plain number with the comma behind it. */
    static final int REACH = 4 * Long.BYTES;

    private static final int BITS_TO_BYTES = 3;
    private static final int HALF_BYTE = 4;
    /** Divides numbers of eight digits by ten thousand, with 40 bits after the point. */
    private static final long TEN_THOUSANDTH = 109_951_163L;
    /** Divides numbers below ten thousand by hundred, with 20 bits after the point. */
    private static final long HUNDREDTH = 10_486;
    /** Divides numbers below hundred by ten, with 10 bits after the point. */
    private static final long TENTH = 103;

    private static final long LOW_BITS = EVERY_BYTE * 0x7F;
    /** The bits in which brackets and braces differ. With these set, each of them has all seven bits set. */
    private static final long BRACKET_DIFFERENCE = 0x26;

    private static final long HIGH_BITS = 0x8080_8080_8080_8080L;
    /** Selects the first and the fifth byte. */
    private static final long FIRST_AND_FIFTH = 0x0000_00FF_0000_00FFL;

    private DigitChunk() {}

    /** Reads eight characters. A digit becomes a byte from 0 to 9, the first one in the lowest byte. */
    static long read(byte[] text, int from) {
        return (long) LONG.get(text, from) ^ (EVERY_BYTE * '0');
    }

    /** Returns the number of digits before the first other character. */
    static int count(long chunk) {
        long others = (((chunk & LOW_BITS) + ABOVE_NINE) | chunk) & HIGH_BITS;
        return Long.numberOfTrailingZeros(others) >>> BITS_TO_BYTES;
    }

    /** Returns the value of the first {@code count} digits of a chunk of characters. */
    static long value(long chunk, int count) {
        // Zeros replace leading digits; in two shifts, since one shift cannot be by 64.
        int half = (Long.BYTES - count) * HALF_BYTE;
        long digits = chunk << half << half;
        // Neighbors are joined: pairs, pairs of pairs, all.
        long pairs = digits * 10 + (digits >>> Byte.SIZE);
        long even = (pairs & FIRST_AND_FIFTH) * (100 + (1_000_000L << Integer.SIZE));
        long odd = ((pairs >>> Short.SIZE) & FIRST_AND_FIFTH) * (1 + (10_000L << Integer.SIZE));
        return (even + odd) >>> Integer.SIZE;
    }

    /**
     * Finds the comma behind a number. Its index depends only on the text, so a processor can start on the next number
     * while it still parses this one.
     *
     * @param text bytes with a margin of {@link #REACH}
     * @param from the index of the number
     * @return the index of the comma, or {@code from} plus {@link #REACH} if there is none before
     */
    static int findComma(byte[] text, int from) {
        int count = countToComma(text, from);
        // Without a branch: it is unpredictable whether the comma is in the first or the second chunk.
        count += countToComma(text, from + Long.BYTES) & -(count >>> BITS_TO_BYTES);
        if (count == REACH / 2) {
            int more = countToComma(text, from + REACH / 2);
            count += more + (countToComma(text, from + REACH / 2 + Long.BYTES) & -(more >>> BITS_TO_BYTES));
        }
        return from + count;
    }

    private static int countToComma(byte[] text, int from) {
        long difference = (long) LONG.get(text, from) ^ (EVERY_BYTE * ',');
        long same = (difference - EVERY_BYTE) & ~difference & HIGH_BITS;
        return Long.numberOfTrailingZeros(same) >>> BITS_TO_BYTES;
    }

    /**
     * Finds the next bracket, brace or quotation mark of a text of at most {@link Integer#MAX_VALUE} bytes, from an
     * offset on; returns its offset, or that of the text's end if there is none.
     */
    static int findBracket(MemorySegment text, int from) {
        int end = (int) text.byteSize();
        int index = from;
        while (index <= end - Long.BYTES) {
            long found = brackets(text.get(LittleEndian.LONG, index));
            if (found == 0) {
                index += Long.BYTES;
            } else {
                index += Long.numberOfTrailingZeros(found) >>> BITS_TO_BYTES;
                if (isBracket(text.get(LittleEndian.BYTE, index))) {
                    return index;
                }
                index++;
            }
        }
        while (index < end && !isBracket(text.get(LittleEndian.BYTE, index))) {
            index++;
        }
        return index;
    }

    /**
     * Marks the first bracket, brace or quotation mark. Also marks one of a few similar letters, and perhaps later
     * characters.
     */
    private static long brackets(long characters) {
        long different = (characters | (EVERY_BYTE * BRACKET_DIFFERENCE)) ^ LOW_BITS;
        long unquoted = characters ^ (EVERY_BYTE * '"');
        return (((different - EVERY_BYTE) & ~different) | ((unquoted - EVERY_BYTE) & ~unquoted)) & HIGH_BITS;
    }

    private static boolean isBracket(byte character) {
        return switch (character) {
            case '[', ']', '{', '}', '"' -> true;
            default -> false;
        };
    }

    /** Returns the eight digits of a number below 100,000,000, zeros in front included. */
    static long of(int value) {
        // Halved into digits: 4 and 4, 2 and 2 and 2 and 2, then single ones; the first one ends in the lowest byte.
        long high = (value * TEN_THOUSANDTH) >>> 40;
        long fours = high + ((value - high * 10_000) << Integer.SIZE);
        long hundreds = ((fours * HUNDREDTH) >>> 20) & 0x7F_0000_007FL;
        long twos = hundreds + ((fours - hundreds * 100) << Short.SIZE);
        long tens = ((twos * TENTH) >>> 10) & 0x000F_000F_000F_000FL;
        return tens + ((twos - tens * 10) << Byte.SIZE);
    }

    /** Returns the number of trailing zeros of eight digits. */
    static int zerosAtEnd(long digits) {
        return Long.numberOfLeadingZeros(digits) >>> BITS_TO_BYTES;
    }

    /** Writes eight digits without the first {@code omitted}, and as many zeros behind them. */
    static void write(long digits, int omitted, byte[] target, int from) {
        // In two shifts, since one shift cannot be by 64.
        int half = omitted * HALF_BYTE;
        LONG.set(target, from, (digits >>> half >>> half) | (EVERY_BYTE * '0'));
    }

    /** Writes eight zeros. */
    static void writeZeros(byte[] target, int from) {
        LONG.set(target, from, EVERY_BYTE * '0');
    }
}
