package dev.nereid.http.json;

/** Writes decimal numbers in the reference server's notation. Immutable. */
final class JsonDecimals {
    /** The space that any number needs, with the bytes written behind its end. */
    static final int MAX_BYTES = 32;

    /** Numbers below ten to this power are written without exponent. */
    private static final int MAX_PLAIN_DIGITS = 21;
    /**
     * The maximum number of zeros after the point without an exponent. It applies to numbers below one; numbers with
     * more zeros are written with exponent.
     */
    private static final int MAX_LEADING_ZEROS = 5;

    private static final int EIGHT_DIGITS = 10_000_000;
    private static final int NINE_DIGITS = 100_000_000;

    private JsonDecimals() {}

    /**
     * Writes a decimal number without trailing zeros.
     *
     * <p>Most numbers take no branch, since the number of digits and the place of the point are not predictable.
     * Instead all possible bytes are written, and the next number overwrites the rest.
     *
     * @param digits seven to nine digits, less than 200,000,000
     * @param power the power of ten that they are multiplied by
     * @param target the target, with {@link #MAX_BYTES} writable bytes
     * @param from the index at which to begin
     * @return the index after the number
     */
    static int write(int digits, int power, byte[] target, int from) {
        int lead = oneIfLess(NINE_DIGITS - 1, digits);
        int missing = oneIfLess(digits, EIGHT_DIGITS);
        long eight = DigitChunk.of(digits - (NINE_DIGITS & -lead));
        long rest = eight >>> (missing * Byte.SIZE);
        int written = Long.BYTES + lead - missing;
        int length = written - DigitChunk.zerosAtEnd(eight);
        int point = written + power;
        if (point >= -MAX_LEADING_ZEROS && point <= Long.BYTES) {
            return writePlain(lead, rest, length, point, target, from);
        } else if (point > 0 && point <= MAX_PLAIN_DIGITS) {
            return writeLarge(lead, rest, point, target, from);
        }
        return writeWithExponent(lead, rest, length, point - 1, target, from);
    }

    /**
     * Writes a number from 0.000001 to less than 100,000,000.
     *
     * @param lead one if the first of nine digits, which is one, stands before the rest, otherwise zero
     * @param rest the other digits
     * @param length the number of digits to write
     * @param point the number of digits before the point; if negative, the number of zeros behind it
     */
    private static int writePlain(int lead, long rest, int length, int point, byte[] target, int from) {
        // Masks for numbers below one and for the others.
        int small = (point - 1) >> (Integer.SIZE - 1);
        int large = ~small;
        int start = from + ((2 - point) & small);
        int whole = (point - lead) & large;
        DigitChunk.writeZeros(target, from);
        target[start] = '1';
        DigitChunk.write(rest, 0, target, start + lead);
        // The digits behind the point again, one byte later.
        DigitChunk.write(rest, whole, target, start + lead + whole + (1 & large));
        target[from + (point & large) + (1 & small)] = '.';
        return start + Math.max(length, (point + 1) & large) + (1 & large);
    }

    private static int writeLarge(int lead, long rest, int point, byte[] target, int from) {
        target[from] = '1';
        DigitChunk.write(rest, 0, target, from + lead);
        DigitChunk.writeZeros(target, from + lead + Long.BYTES);
        DigitChunk.writeZeros(target, from + lead + 2 * Long.BYTES);
        target[from + point] = '.';
        return from + point + 2;
    }

    private static int writeWithExponent(int lead, long rest, int length, int exponent, byte[] target, int from) {
        target[from] = '1';
        DigitChunk.write(rest, 0, target, from + lead);
        DigitChunk.write(rest, 1 - lead, target, from + 2);
        target[from + 1] = '.';
        int end = length == 1 ? from + 1 : from + 1 + length;
        target[end++] = 'e';
        target[end] = '-';
        end += oneIfLess(exponent, 0);
        int size = Math.abs(exponent);
        target[end] = (byte) ('0' + size / 10);
        end += oneIfLess(9, size);
        target[end] = (byte) ('0' + size % 10);
        return end + 1;
    }

    /** Returns one if a number is less than another one, otherwise zero. Their difference must not overflow. */
    private static int oneIfLess(int number, int other) {
        return (number - other) >>> (Integer.SIZE - 1);
    }

    /**
     * Rewrites a float or double in place from Java's notation: {@code 1.0E7} as {@code 10000000.0}, {@code 1.0E22} as
     * {@code 1e22}, {@code 1.5E-7} as {@code 1.5e-7}.
     */
    static void restyle(StringBuilder number) {
        int mark = number.indexOf("E");
        if (mark < 0) {
            return;
        }
        int exponent = Integer.parseInt(number, mark + 1, number.length(), 10);
        number.setLength(mark);
        int first = number.charAt(0) == '-' ? 1 : 0;
        number.deleteCharAt(first + 1);
        int digits = number.length() - first;
        if (digits == 2 && number.charAt(first + 1) == '0') {
            number.setLength(first + 1);
            digits = 1;
        }
        int point = exponent + 1;
        if (point >= digits && point <= MAX_PLAIN_DIGITS) {
            number.repeat('0', point - digits).append(".0");
        } else if (point > 0 && point <= MAX_PLAIN_DIGITS) {
            number.insert(first + point, '.');
        } else if (point <= 0 && point >= -MAX_LEADING_ZEROS) {
            number.insert(first, "0.").insert(first + 2, "0".repeat(-point));
        } else {
            if (digits > 1) {
                number.insert(first + 1, '.');
            }
            number.append('e').append(exponent);
        }
    }
}
