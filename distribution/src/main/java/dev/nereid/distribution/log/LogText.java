package dev.nereid.distribution.log;

import org.jspecify.annotations.Nullable;

/**
 * Escapes control characters in text for the log. Static functions only.
 *
 * <p>Characters that would end a line, move the cursor of a terminal or change the direction of text are escaped,
 * whatever their source: ids, names and headers of clients, messages of backends.
 */
final class LogText {
    private static final char LINE_SEPARATOR = 0x2028;
    private static final char PARAGRAPH_SEPARATOR = 0x2029;

    private LogText() {}

    /** Returns the text of a value, or its type if {@code toString} fails. */
    static String of(@Nullable Object value) {
        try {
            return String.valueOf(value);
        } catch (RuntimeException | StackOverflowError | LinkageError _) {
            return value == null ? "null" : value.getClass().getName();
        }
    }

    /** Appends the beginning of a text, with control characters escaped. */
    static void append(StringBuilder line, String text, int maxLength) {
        int end = Math.min(text.length(), maxLength);
        for (int i = 0; i < end; i++) {
            char c = text.charAt(i);
            if (isPlain(c)) {
                line.append(c);
            } else {
                escape(line, c);
            }
        }
        if (end < text.length()) {
            line.append('…');
        }
    }

    private static boolean isPlain(char c) {
        if (c >= ' ' && c < 0x7F) {
            return true;
        }
        return c >= 0xA0 && !isFormat(c);
    }

    /** Returns whether a character ends a line, changes the direction of text, or is invisible. */
    private static boolean isFormat(char c) {
        return c == LINE_SEPARATOR || c == PARAGRAPH_SEPARATOR || Character.getType(c) == Character.FORMAT;
    }

    private static void escape(StringBuilder line, char c) {
        switch (c) {
            case '\n' -> line.append("\\n");
            case '\r' -> line.append("\\r");
            case '\t' -> line.append("\\t");
            default -> {
                line.append("\\u");
                for (int shift = 12; shift >= 0; shift -= 4) {
                    line.append(Character.forDigit(c >> shift & 0xF, 16));
                }
            }
        }
    }
}
