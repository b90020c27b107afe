package dev.nereid.http;

import com.fasterxml.jackson.core.io.NumberInput;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;

/**
 * A number of a JSON text, taken apart. Reused for one number after another; confined to the thread that reads a request.
 *
 * <p>Numbers are exact: whole numbers as 64-bit magnitudes, all others as the nearest double.
 */
final class JsonNumber {
    /** The largest unsigned 64-bit number but for its last digit, and that digit. */
    private static final long MOST_DIGITS = Long.divideUnsigned(-1L, 10);

    private static final int LAST_DIGIT = (int) Long.remainderUnsigned(-1L, 10);
    /** Powers of ten that a double holds exactly. */
    private static final double[] POWERS = {
        1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
        1e20, 1e21, 1e22
    };

    private static final long LARGEST_EXACT_INTEGER = 1L << 53;
    private static final int LARGEST_EXPONENT = 308;
    /** Larger exponents mean the same: zero, or too much. */
    private static final int EXPONENT_CAP = 100_000;

    private MemorySegment text = MemorySegment.NULL;
    private int start;
    private int at;
    private int end;
    private boolean negative;
    private boolean whole;
    /** The digits as one number, unsigned; only if there were not {@link #tooManyDigits}. */
    private long magnitude;

    private boolean tooManyDigits;
    /** By what power of ten the magnitude is to be multiplied. */
    private int exponent;

    private int integerDigits;
    private int fractionDigits;
    private int writtenExponent;
    /** The value of a word: not a number, or infinite. Zero for a number made of digits. */
    private double word;

    /**
     * Reads a number, or finds that there is none.
     *
     * @param json the JSON text
     * @param from the offset at which a number is expected
     * @param limit the offset of the text's end
     * @return the offset after the number
     */
    int read(MemorySegment json, int from, int limit) {
        text = json;
        start = from;
        at = from;
        end = limit;
        magnitude = 0;
        exponent = 0;
        writtenExponent = 0;
        integerDigits = 0;
        fractionDigits = 0;
        tooManyDigits = false;
        whole = true;
        word = 0;
        negative = consume('-');
        byte first = peek();
        if (first == 'I' || first == 'N') {
            readWord();
        } else {
            readDigits(first);
        }
        return at;
    }

    /** Says whether this is a whole number from 0 to 2^64 − 1. */
    boolean isUnsigned() {
        return whole && !tooManyDigits && (!negative || magnitude == 0);
    }

    /** Says whether this is a whole number from −2^63 to 2^63 − 1. */
    boolean isSigned() {
        return whole && !tooManyDigits && (magnitude >= 0 || (negative && magnitude == Long.MIN_VALUE));
    }

    /** Returns the 64 bits of a number that {@link #isUnsigned} or {@link #isSigned}. */
    long bits() {
        return negative ? -magnitude : magnitude;
    }

    /** Returns the nearest double; a whole number has no negative zero. */
    double value() {
        if (word != 0) {
            return word;
        }
        if (!tooManyDigits
                && magnitude >= 0
                && magnitude <= LARGEST_EXACT_INTEGER
                && Math.abs(exponent) < POWERS.length) {
            double digits = magnitude;
            double value = exponent < 0 ? digits / POWERS[-exponent] : digits * POWERS[exponent];
            return negative && !(whole && magnitude == 0) ? -value : value;
        }
        return slowValue();
    }

    private double slowValue() {
        char[] digits = new char[at - start];
        for (int i = 0; i < digits.length; i++) {
            digits[i] = (char) text.get(ValueLayout.JAVA_BYTE, start + i);
        }
        return NumberInput.parseDouble(digits, 0, digits.length, true);
    }

    private void readWord() {
        if (consume('N')) {
            expectWord("aN");
            word = Double.NaN;
        } else {
            consume('I');
            expectWord("nf");
            if (peek() == 'i') {
                expectWord("inity");
            }
            word = negative ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
        }
        whole = false;
    }

    private void expectWord(String rest) {
        for (int i = 0; i < rest.length(); i++) {
            if (!consume(rest.charAt(i))) {
                throw JsonReader.syntaxError("Invalid value.", at);
            }
        }
    }

    private void readDigits(byte first) {
        if (!isDigit(first)) {
            throw JsonReader.syntaxError("Invalid value.", at);
        }
        if (first == '0') {
            at++;
        } else {
            int before = at;
            readRun();
            integerDigits = at - before;
        }
        if (consume('.')) {
            readFraction();
        }
        if (peek() == 'e' || peek() == 'E') {
            at++;
            readExponent();
        }
    }

    private void readFraction() {
        whole = false;
        if (!isDigit(peek())) {
            throw JsonReader.syntaxError("Miss fraction part in number.", at);
        }
        int before = at;
        readRun();
        fractionDigits = at - before;
        exponent = -fractionDigits;
    }

    private void readExponent() {
        whole = false;
        boolean minus = consume('-');
        if (!minus) {
            consume('+');
        }
        if (!isDigit(peek())) {
            throw JsonReader.syntaxError("Miss exponent in number.", at);
        }
        for (; isDigit(peek()); at++) {
            writtenExponent = Math.min(EXPONENT_CAP, writtenExponent * 10 + peek() - '0');
        }
        if (minus) {
            writtenExponent = -writtenExponent;
        }
        exponent += writtenExponent;
    }

    private void readRun() {
        long digits = magnitude;
        boolean full = tooManyDigits;
        int position = at;
        for (; position < end; position++) {
            int digit = text.get(ValueLayout.JAVA_BYTE, position) - '0';
            if (digit < 0 || digit > 9) {
                break;
            }
            full |= digits < 0 || digits > MOST_DIGITS || (digits == MOST_DIGITS && digit > LAST_DIGIT);
            digits = full ? digits : digits * 10 + digit;
        }
        magnitude = digits;
        tooManyDigits = full;
        at = position;
    }

    /** Checks that the number is not larger than a double can be. */
    void checkRange() {
        if (integerDigits + writtenExponent <= LARGEST_EXPONENT || word != 0) {
            return;
        }
        if (writtenExponent > LARGEST_EXPONENT + fractionDigits || Double.isInfinite(slowValue())) {
            throw JsonReader.syntaxError("Number too big to be stored in double.", start);
        }
    }

    private boolean consume(char expected) {
        if (peek() != expected) {
            return false;
        }
        at++;
        return true;
    }

    private byte peek() {
        return at < end ? text.get(ValueLayout.JAVA_BYTE, at) : JsonReader.END;
    }

    private static boolean isDigit(byte character) {
        return character >= '0' && character <= '9';
    }
}
