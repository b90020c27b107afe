package dev.nereid.http;

/** Turns Java's notation of floating-point numbers into the one that clients of the protocol know. Immutable. */
final class JsonDecimals {
    /** Numbers below ten to this power are written without exponent. */
    private static final int LARGEST_PLAIN = 21;
    /** Numbers below one are written without exponent if at most this many zeros follow the point. */
    private static final int MOST_ZEROS = 5;

    private JsonDecimals() {}

    /**
     * Rewrites a number: {@code 1.0E7} as {@code 10000000.0}, {@code 1.0E22} as {@code 1e22}, {@code 1.5E-7} as
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
