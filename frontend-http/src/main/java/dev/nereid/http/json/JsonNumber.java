package dev.nereid.http.json;

/**
 * A parsed JSON number: exact integer, or nearest float or double. Reused for one number after another; confined to the
 * thread that reads a request.
 *
 * <p>Whole numbers are exact, as 64-bit magnitudes; all others are rounded to the nearest float or double. Plain
 * numbers, with a few digits and perhaps a point, have a fast path; all others take the slow one.
 */
public final class JsonNumber {
    /** The result if there is no plain number. */
    static final int NOT_PLAIN = -1;

    /** The maximum number of digits of a 64-bit number. */
    private static final int MAX_PLAIN_DIGITS = 19;

    private static final long[] POWERS = new long[MAX_PLAIN_DIGITS + 1];
    /** The largest unsigned 64-bit number without its last digit. */
    private static final long MAX_BEFORE_LAST_DIGIT = Long.divideUnsigned(-1L, 10);

    private static final int LAST_DIGIT = (int) Long.remainderUnsigned(-1L, 10);

    private static final int MAX_EXPONENT = 308;
    /** A bound on exponents. With any number of digits that fit a text, larger ones yield zero or an overflow. */
    private static final long EXPONENT_CAP = 1L << 40;

    static {
        POWERS[0] = 1;
        // The last one is unsigned.
        for (int i = 1; i < POWERS.length; i++) {
            POWERS[i] = 10 * POWERS[i - 1];
        }
    }

    private JsonWindow text = JsonWindow.EMPTY;
    private int start;
    private int at;
    /** One for a negative number, else zero. An operand instead of a branch, since signs are unpredictable. */
    private int minus;

    private boolean whole;
    /** The digits as one unsigned number; valid unless {@link #tooManyDigits}. */
    private long magnitude;

    private boolean tooManyDigits;
    /** The power of ten that the magnitude is multiplied by. */
    private long exponent;

    private int integerDigits;
    private int fractionDigits;
    private long writtenExponent;
    /** The value of a word, NaN or an infinity; zero for a number with digits. */
    private double word;

    /** Reads a number expected at an offset; returns the offset after it. Anything else is a syntax error. */
    int read(JsonWindow json, int from) {
        if (from < json.end()) {
            int index = json.indexOf(from);
            int after = readPlain(json.array(), index);
            if (after != NOT_PLAIN && after < json.length()) {
                return json.offsetOf(after);
            }
        }
        text = json;
        start = from;
        at = from;
        readAny();
        return at;
    }

    /** Returns the index after a plain number, as {@link #readPlain} does, without computing its value. */
    public static int skipPlain(byte[] bytes, int from) {
        int first = from + oneIfEqual(bytes[from], '-');
        int index = skipPlainDigits(bytes, first);
        if (isWrongLength(index - first, bytes[first])) {
            return NOT_PLAIN;
        }
        if (bytes[index] == '.') {
            int fraction = index + 1;
            index = skipPlainDigits(bytes, fraction);
            if (index == fraction) {
                return NOT_PLAIN;
            }
        }
        return (bytes[index] | 0x20) == 'e' ? skipPlainExponent(bytes, index + 1) : index;
    }

    private static int skipPlainDigits(byte[] bytes, int from) {
        int index = from;
        int count;
        do {
            count = DigitChunk.count(DigitChunk.read(bytes, index));
            int more = DigitChunk.count(DigitChunk.read(bytes, index + Long.BYTES));
            // Without a branch: it is unpredictable whether there are seven, eight or nine digits.
            count += more & -(count >>> 3);
            index += count;
        } while (count == 2 * Long.BYTES);
        return index;
    }

    private static int skipPlainExponent(byte[] bytes, int from) {
        int first = bytes[from] == '-' || bytes[from] == '+' ? from + 1 : from;
        int count = DigitChunk.count(DigitChunk.read(bytes, first));
        return count < 1 || count > 2 ? NOT_PLAIN : first + count;
    }

    /** Returns whether this is a whole number from 0 to 2^64 − 1. */
    public boolean isUnsigned() {
        return whole && !tooManyDigits && (minus == 0 || magnitude == 0);
    }

    /** Returns whether this is a whole number from −2^63 to 2^63 − 1. */
    boolean isSigned() {
        return whole && !tooManyDigits && (magnitude >= 0 || (minus == 1 && magnitude == Long.MIN_VALUE));
    }

    /** Returns the 64 bits of a number that {@link #isUnsigned} or {@link #isSigned}. */
    public long bits() {
        return (magnitude ^ -minus) + minus;
    }

    /** Returns the nearest double; a whole number has no negative zero. */
    double value() {
        if (word != 0) {
            return word;
        }
        double value =
                isExact() ? DecimalRounding.toDouble(magnitude, (int) exponent) : Double.parseDouble(decisiveText());
        return Double.longBitsToDouble(Double.doubleToRawLongBits(value) | ((long) sign() << (Long.SIZE - 1)));
    }

    /** Returns the nearest float; a whole number has no negative zero. */
    float floatValue() {
        if (word != 0) {
            return (float) word;
        }
        float value = isExact() ? DecimalRounding.toFloat(magnitude, (int) exponent) : Float.parseFloat(decisiveText());
        return Float.intBitsToFloat(Float.floatToRawIntBits(value) | (sign() << (Integer.SIZE - 1)));
    }

    void checkRange() {
        if (integerDigits + writtenExponent <= MAX_EXPONENT || word != 0) {
            return;
        }
        if (writtenExponent > MAX_EXPONENT + fractionDigits || Double.isInfinite(value())) {
            throw JsonErrors.syntax("Number too big to be stored in double.", start, text.text());
        }
    }

    private int sign() {
        return magnitude == 0 && whole ? 0 : minus;
    }

    private boolean isExact() {
        return !tooManyDigits && exponent == (int) exponent;
    }

    /**
     * Reads a plain number. It has up to 19 digits, perhaps with a sign, a point and a short exponent.
     *
     * @param bytes a part of a text, with a margin of zeros
     * @param from the index at which a number is expected
     * @return the index after it, which may be in the margin; {@link #NOT_PLAIN} if there is no plain number
     */
    int readPlain(byte[] bytes, int from) {
        tooManyDigits = false;
        integerDigits = 0;
        writtenExponent = 0;
        word = 0;
        minus = oneIfEqual(bytes[from], '-');
        int first = from + minus;
        if (bytes[first + 1] == '.') {
            int after = readOneDigitAndFraction(bytes, first);
            if (after != NOT_PLAIN) {
                return after;
            }
        }
        magnitude = 0;
        exponent = 0;
        whole = true;
        int index = readPlainDigits(bytes, first);
        if (isWrongLength(index - first, bytes[first])) {
            return NOT_PLAIN;
        }
        if (bytes[index] == '.') {
            whole = false;
            int fraction = index + 1;
            index = readPlainDigits(bytes, fraction);
            exponent = (long) fraction - index;
            if (index <= fraction) {
                return NOT_PLAIN;
            }
        }
        return (bytes[index] | 0x20) == 'e' ? readPlainExponent(bytes, index + 1) : index;
    }

    /** Reads the common form of numbers between -10 and 10. It is one digit, the point, and up to 15 digits. */
    private int readOneDigitAndFraction(byte[] bytes, int from) {
        int digit = bytes[from] - '0';
        int fraction = from + 2;
        long chunk = DigitChunk.read(bytes, fraction);
        long next = DigitChunk.read(bytes, fraction + Long.BYTES);
        int count = DigitChunk.count(chunk);
        int more = DigitChunk.count(next) & -(count >>> 3);
        int digits = count + more;
        if (digit < 0 || digit > 9 || digits == 0 || digits == 2 * Long.BYTES) {
            return NOT_PLAIN;
        }
        whole = false;
        magnitude =
                digit * POWERS[digits] + DigitChunk.value(chunk, count) * POWERS[more] + DigitChunk.value(next, more);
        exponent = -digits;
        int index = fraction + digits;
        return (bytes[index] | 0x20) == 'e' ? readPlainExponent(bytes, index + 1) : index;
    }

    private int readPlainDigits(byte[] bytes, int from) {
        int index = from;
        int count;
        do {
            long chunk = DigitChunk.read(bytes, index);
            long next = DigitChunk.read(bytes, index + Long.BYTES);
            count = DigitChunk.count(chunk);
            int more = DigitChunk.count(next) & -(count >>> 3);
            long value = DigitChunk.value(chunk, count) * POWERS[more] + DigitChunk.value(next, more);
            count += more;
            if (Long.compareUnsigned(magnitude, POWERS[MAX_PLAIN_DIGITS - count]) >= 0) {
                return NOT_PLAIN;
            }
            magnitude = magnitude * POWERS[count] + value;
            index += count;
        } while (count == 2 * Long.BYTES);
        return index;
    }

    /** Reads one or two digits, perhaps with a sign. */
    private int readPlainExponent(byte[] bytes, int from) {
        whole = false;
        int first = bytes[from] == '-' || bytes[from] == '+' ? from + 1 : from;
        long chunk = DigitChunk.read(bytes, first);
        int count = DigitChunk.count(chunk);
        if (count < 1 || count > 2) {
            return NOT_PLAIN;
        }
        long value = DigitChunk.value(chunk, count);
        exponent += bytes[from] == '-' ? -value : value;
        return first + count;
    }

    private void readAny() {
        tooManyDigits = false;
        integerDigits = 0;
        writtenExponent = 0;
        word = 0;
        magnitude = 0;
        exponent = 0;
        fractionDigits = 0;
        whole = true;
        minus = consume('-') ? 1 : 0;
        byte first = peek();
        if (first == 'I' || first == 'N') {
            readWord();
        } else {
            readDigits(first);
        }
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
            word = minus == 1 ? Double.NEGATIVE_INFINITY : Double.POSITIVE_INFINITY;
        }
        whole = false;
    }

    private void expectWord(String rest) {
        for (int i = 0; i < rest.length(); i++) {
            if (!consume(rest.charAt(i))) {
                throw JsonErrors.syntax("Invalid value.", at, text.text());
            }
        }
    }

    private void readDigits(byte first) {
        if (!isDigit(first)) {
            throw JsonErrors.syntax("Invalid value.", at, text.text());
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
            throw JsonErrors.syntax("Miss fraction part in number.", at, text.text());
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
            throw JsonErrors.syntax("Miss exponent in number.", at, text.text());
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
        for (; isDigit(peek()); at++) {
            int digit = peek() - '0';
            tooManyDigits |= magnitude < 0
                    || magnitude > MAX_BEFORE_LAST_DIGIT
                    || (magnitude == MAX_BEFORE_LAST_DIGIT && digit > LAST_DIGIT);
            magnitude = tooManyDigits ? magnitude : magnitude * 10 + digit;
        }
    }

    private String decisiveText() {
        return DecisiveDigits.of(text.text(), start, at, writtenExponent);
    }

    private boolean consume(char expected) {
        if (peek() != expected) {
            return false;
        }
        at++;
        return true;
    }

    private byte peek() {
        return text.get(at);
    }

    /** Returns one if a byte is the expected one, otherwise zero. */
    private static int oneIfEqual(byte actual, char expected) {
        return (((actual & 0xFF) ^ expected) - 1) >>> (Integer.SIZE - 1);
    }

    /** Returns whether a number has no digits, or more than one and begins with zero. */
    private static boolean isWrongLength(int digits, byte first) {
        int max = (oneIfEqual(first, '0') - 1) >>> 1;
        return Integer.compareUnsigned(digits - 1, max) > 0;
    }

    private static boolean isDigit(byte character) {
        return character >= '0' && character <= '9';
    }
}
