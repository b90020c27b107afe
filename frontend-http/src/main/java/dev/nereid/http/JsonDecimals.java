package dev.nereid.http;

/** Writes floating-point numbers in the notation that clients of the protocol know. Immutable. */
final class JsonDecimals {
    /** Room for any number: 21 digits, a point and a zero, or nine digits written as 16 behind a zero and five others. */
    static final int LONGEST = 32;

    /** Numbers below ten to this power are written without exponent. */
    private static final int LARGEST_PLAIN = 21;
    /** Numbers below one are written without exponent if at most this many zeros follow the point. */
    private static final int MOST_ZEROS = 5;

    /** The least numbers of one digit more each. */
    private static final int[] POWERS = {
        0, 10, 100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000
    };

    private JsonDecimals() {}

    /**
     * Writes a decimal number.
     *
     * @param digits its digits, which do not end in zero; at most nine
     * @param power by what power of ten they are multiplied
     * @param target where to write, with room for {@link #LONGEST}
     * @param from the index at which to begin
     * @return the index after the number
     */
    static int write(int digits, int power, byte[] target, int from) {
        int length = length(digits);
        int point = length + power;
        if (point > LARGEST_PLAIN || point < -MOST_ZEROS) {
            return writeWithExponent(digits, length, point - 1, target, from);
        } else if (point <= 0) {
            putZeros(1 - point, target, from + 1);
            target[from] = '0';
            target[from + 1] = '.';
            return putDigits(digits, length, target, from + 2 - point);
        } else if (power < 0) {
            return writeWithPoint(digits, length, point, target, from);
        }
        int end = putDigits(digits, length, target, from);
        putZeros(power + 2, target, end);
        target[end + power] = '.';
        return end + power + 2;
    }

    private static int writeWithPoint(int digits, int length, int point, byte[] target, int from) {
        int end = putDigits(digits, length, target, from + 1);
        for (int i = from; i < from + point; i++) {
            target[i] = target[i + 1];
        }
        target[from + point] = '.';
        return end;
    }

    private static int writeWithExponent(int digits, int length, int exponent, byte[] target, int from) {
        int end =
                length == 1 ? putDigits(digits, length, target, from) : writeWithPoint(digits, length, 1, target, from);
        target[end++] = 'e';
        if (exponent < 0) {
            target[end++] = '-';
        }
        int size = Math.abs(exponent);
        return putDigits(size, length(size), target, end);
    }

    private static int length(int digits) {
        // The logarithm of two, from above: right, or one too much.
        int most = ((Integer.SIZE - Integer.numberOfLeadingZeros(digits)) * 1233) >> 12;
        return digits < POWERS[most] ? most : most + 1;
    }

    private static int putDigits(int digits, int length, byte[] target, int from) {
        if (length <= Long.BYTES) {
            DigitChunk.write(digits, length, target, from);
        } else {
            int first = digits / POWERS[Long.BYTES];
            target[from] = (byte) ('0' + first);
            DigitChunk.write(digits - first * POWERS[Long.BYTES], Long.BYTES, target, from + 1);
        }
        return from + length;
    }

    private static void putZeros(int count, byte[] target, int from) {
        for (int i = from; i < from + count; i++) {
            target[i] = '0';
        }
    }

    /**
     * Rewrites a number from Java's notation: {@code 1.0E7} as {@code 10000000.0}, {@code 1.0E22} as {@code 1e22}, {@code 1.5E-7} as
     * {@code 1.5e-7}.
     *
     * @param number what Java writes for a float or a double; changed in place
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
        if (point >= digits && point <= LARGEST_PLAIN) {
            number.repeat('0', point - digits).append(".0");
        } else if (point > 0 && point <= LARGEST_PLAIN) {
            number.insert(first + point, '.');
        } else if (point <= 0 && point >= -MOST_ZEROS) {
            number.insert(first, "0.").insert(first + 2, "0".repeat(-point));
        } else {
            if (digits > 1) {
                number.insert(first + 1, '.');
            }
            number.append('e').append(exponent);
        }
    }
}
