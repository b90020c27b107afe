package dev.nereid.distribution.metrics;

import java.math.BigDecimal;

/**
 * Formats metric values without exponents, and whole numbers without a fraction. Parsers of the format read both, but
 * some scripts parse the text. Static functions only.
 */
final class PlainNumbers {
    private PlainNumbers() {}

    /** Returns a text in the Prometheus format, lines that end with a value and comments, with plain values. */
    static String in(String text) {
        StringBuilder plain = new StringBuilder(text.length());
        int start = 0;
        while (start < text.length()) { // values of labels may contain other line breaks
            int end = text.indexOf('\n', start);
            int next = end < 0 ? text.length() : end;
            append(text.substring(start, next), plain);
            start = next + 1;
        }
        return plain.toString();
    }

    private static void append(String line, StringBuilder plain) {
        int value = line.lastIndexOf(' ') + 1;
        if (line.startsWith("#") || !isNumber(line, value)) {
            plain.append(line).append('\n');
            return;
        }
        BigDecimal number = new BigDecimal(line.substring(value)).stripTrailingZeros();
        plain.append(line, 0, value).append(number.toPlainString()).append('\n');
    }

    /** Returns whether the value is a finite number. Infinite values and NaN end with a letter. */
    private static boolean isNumber(String line, int start) {
        return start < line.length() && Character.isDigit(line.charAt(line.length() - 1));
    }
}
