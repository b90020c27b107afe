package dev.nereid.http.json;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/** Truncates long decimal numbers without changing how they round. Immutable. */
final class DecisiveDigits {
    /** The number of digits that, with the information whether others follow, determine any number's rounding. */
    private static final int MAX_DIGITS = 800;
    /** The exponent beyond which a number of that many digits is zero or infinite. */
    private static final int MAX_EXPONENT = 2000;

    private DecisiveDigits() {}

    /**
     * Returns a shorter number with the same rounding.
     *
     * @param text a valid JSON text
     * @param start the offset at which the number begins
     * @param end the offset after it
     * @param exponent the number's exponent, zero if it has none
     * @return digits and an exponent, without sign
     */
    static String of(MemorySegment text, int start, int end, long exponent) {
        StringBuilder digits = new StringBuilder();
        boolean fraction = false;
        boolean more = false;
        long power = exponent;
        for (int i = start; i < end; i++) {
            byte next = text.get(ValueLayout.JAVA_BYTE, i);
            if (next == 'e' || next == 'E') {
                break;
            }
            if (next == '.') {
                fraction = true;
            } else if (next != '-') {
                if (digits.length() == MAX_DIGITS) {
                    more |= next != '0';
                    power++;
                } else if (next != '0' || !digits.isEmpty()) {
                    digits.append((char) next);
                }
                power -= fraction ? 1 : 0;
            }
        }
        if (more) {
            digits.append('1');
            power--;
        }
        long clamped = Math.clamp(power, -MAX_EXPONENT, MAX_EXPONENT);
        return digits.isEmpty() ? "0" : digits.append('e').append(clamped).toString();
    }
}
