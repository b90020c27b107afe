package dev.nereid.http.json;

import java.lang.foreign.MemorySegment;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteOrder;

/** Reads and writes decimal digits eight at a time. Immutable. */
final class DigitChunk {
    private static final VarHandle LONG = MethodHandles.byteArrayViewVarHandle(long[].class, ByteOrder.LITTLE_ENDIAN);
    private static final long EVERY_BYTE = 0x0101_0101_0101_0101L;
    /** Added to a byte of seven bits, sets its highest bit if it is more than nine. */
    private static final long ABOVE_NINE = EVERY_BYTE * (0x80 - 10);

    /** A plain number and the comma behind it are no longer than this. */
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
    /** The bits that brackets and braces differ in; with all of them set, each has all seven. */
    private static final long ALIKE = 0x26;

    private static final long HIGH_BITS = 0x8080_8080_8080_8080L;
    /** Selects the first and the fifth byte. */
    private static final long FIRST_AND_FIFTH = 0x0000_00FF_0000_00FFL;

    private DigitChunk() {}

    /** Reads eight characters; a digit becomes a byte from 0 to 9, the first one in the lowest byte. */
    static long read(byte[] text, int from) {
        return (long) LONG.get(text, from) ^ (EVERY_BYTE * '0');
    }

    /** Returns how many of the characters are digits, up to the first that is none. */
    static int count(long chunk) {
        long others = (((chunk & LOW_BITS) + ABOVE_NINE) | chunk) & HIGH_BITS;
        return Long.numberOfTrailingZeros(others) >>> BITS_TO_BYTES;
    }

    /**
     * Returns the number that the first digits make.
     *
     * @param chunk the characters
     * @param count how many digits to take
     */
    static long value(long chunk, int count) {
        // Zeros take the places of leading digits; in two steps, since none of them may be by 64.
        int half = (Long.BYTES - count) * HALF_BYTE;
        long digits = chunk << half << half;
        // Neighbors are joined: pairs, pairs of pairs, all.
        long pairs = digits * 10 + (digits >>> Byte.SIZE);
        long even = (pairs & FIRST_AND_FIFTH) * (100 + (1_000_000L << Integer.SIZE));
        long odd = ((pairs >>> Short.SIZE) & FIRST_AND_FIFTH) * (1 + (10_000L << Integer.SIZE));
        return (even + odd) >>> Integer.SIZE;
    }

    /**
     * Finds the comma behind a number. Where it is depends on nothing but the text, so that a processor can go on from
     * there while it still looks at the number.
     *
     * @param text bytes with a margin of {@link #REACH}
     * @param from where the number begins
     * @return the index of the comma, or {@link #REACH} after the beginning if there is none before
     */
    static int findComma(byte[] text, int from) {
        int count = countToComma(text, from);
        // Without a branch: whether it is in the first or in the second chunk is not to be foreseen.
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
     * Finds the next bracket, brace or quotation mark.
     *
     * @param text a text of at most as many bytes as an {@code int} can count
     * @param from where to begin
     * @return its offset, or that of the text's end if there is none
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

    /** Marks the first bracket, brace or quotation mark, or one of a few letters that look alike, and perhaps others behind. */
    private static long brackets(long characters) {
        long different = (characters | (EVERY_BYTE * ALIKE)) ^ LOW_BITS;
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

    /** Returns how many zeros the eight digits end in. */
    static int zerosAtEnd(long digits) {
        return Long.numberOfLeadingZeros(digits) >>> BITS_TO_BYTES;
    }

    /** Writes all but the first few of eight digits, and behind them as many zeros. */
    static void write(long digits, int leftOut, byte[] target, int from) {
        // In two steps, since it may be by 64.
        int half = leftOut * HALF_BYTE;
        LONG.set(target, from, (digits >>> half >>> half) | (EVERY_BYTE * '0'));
    }

    /** Writes eight zeros. */
    static void writeZeros(byte[] target, int from) {
        LONG.set(target, from, EVERY_BYTE * '0');
    }
}
