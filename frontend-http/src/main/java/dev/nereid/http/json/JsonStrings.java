package dev.nereid.http.json;

import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;

/**
 * Decodes JSON strings and their escapes. Immutable.
 *
 * <p>Strings hold any bytes; only escapes are interpreted. Offsets delimit the content between the quotes.
 */
final class JsonStrings {
    private static final int HEX_DIGITS = 4;
    private static final int HEX_BASE = 16;
    private static final String SHORT_ESCAPES = "\"\\/bfnrt";
    private static final String SHORT_ESCAPED = "\"\\/\b\f\n\r\t";

    private JsonStrings() {}

    /** Checks the escape of a backslash; returns the offset after it, or after both halves of a surrogate pair. */
    static int checkEscape(MemorySegment text, int escape, int end) {
        byte kind = byteAt(text, escape + 1, end);
        if (kind != 'u') {
            if (SHORT_ESCAPES.indexOf(kind) < 0) {
                throw JsonErrors.syntax("Invalid escape character in string.", escape, text);
            }
            return escape + 2;
        }
        int after = escape + 2 + HEX_DIGITS;
        int unit = hex(text, escape, escape + 2, end);
        if (unit < Character.MIN_SURROGATE || unit > Character.MAX_SURROGATE) {
            return after;
        }
        boolean pair = Character.isHighSurrogate((char) unit)
                && byteAt(text, after, end) == '\\'
                && byteAt(text, after + 1, end) == 'u'
                && Character.isLowSurrogate((char) hex(text, escape, after + 2, end));
        if (!pair) {
            throw JsonErrors.syntax("The surrogate pair in string is invalid.", escape, text);
        }
        return after + 2 + HEX_DIGITS;
    }

    static boolean hasEscape(MemorySegment text, int start, int end) {
        for (int i = start; i < end; i++) {
            if (text.get(ValueLayout.JAVA_BYTE, i) == '\\') {
                return true;
            }
        }
        return false;
    }

    /** Returns the unescaped length of a checked string in bytes. */
    static int length(MemorySegment text, int start, int end) {
        int length = 0;
        int at = start;
        while (at < end) {
            if (text.get(ValueLayout.JAVA_BYTE, at) == '\\') {
                int codePoint = codePoint(text, at, end);
                length += utf8Length(codePoint);
                at += escapeLength(text, at, codePoint);
            } else {
                length++;
                at++;
            }
        }
        return length;
    }

    /** Writes the unescaped bytes of a checked string. Returns the offset after them in the target. */
    static long copy(MemorySegment text, int start, int end, MemorySegment target, long offset) {
        long out = offset;
        int at = start;
        while (at < end) {
            byte next = text.get(ValueLayout.JAVA_BYTE, at);
            if (next == '\\') {
                int codePoint = codePoint(text, at, end);
                out = putUtf8(codePoint, target, out);
                at += escapeLength(text, at, codePoint);
            } else {
                target.set(ValueLayout.JAVA_BYTE, out++, next);
                at++;
            }
        }
        return out;
    }

    /** Returns a checked string as text; bytes that are not UTF-8 become replacement characters. */
    static String decode(MemorySegment text, int start, int end) {
        byte[] bytes;
        if (hasEscape(text, start, end)) {
            bytes = new byte[length(text, start, end)];
            copy(text, start, end, MemorySegment.ofArray(bytes), 0);
        } else {
            bytes = new byte[end - start];
            MemorySegment.copy(text, ValueLayout.JAVA_BYTE, start, bytes, 0, bytes.length);
        }
        return new String(bytes, StandardCharsets.UTF_8);
    }

    private static int codePoint(MemorySegment text, int escape, int end) {
        byte kind = byteAt(text, escape + 1, end);
        if (kind != 'u') {
            return SHORT_ESCAPED.charAt(SHORT_ESCAPES.indexOf(kind));
        }
        char unit = (char) hex(text, escape, escape + 2, end);
        if (!Character.isHighSurrogate(unit)) {
            return unit;
        }
        return Character.toCodePoint(unit, (char) hex(text, escape, escape + 2 + HEX_DIGITS + 2, end));
    }

    private static int escapeLength(MemorySegment text, int escape, int codePoint) {
        if (text.get(ValueLayout.JAVA_BYTE, escape + 1L) != 'u') {
            return 2;
        }
        return (2 + HEX_DIGITS) * Character.charCount(codePoint);
    }

    private static int hex(MemorySegment text, int escape, int start, int end) {
        int value = 0;
        for (int i = start; i < start + HEX_DIGITS; i++) {
            int digit = Character.digit(byteAt(text, i, end), HEX_BASE);
            if (digit < 0) {
                throw JsonErrors.syntax("Incorrect hex digit after \\u escape in string.", escape, text);
            }
            value = value * HEX_BASE + digit;
        }
        return value;
    }

    private static byte byteAt(MemorySegment text, int offset, int end) {
        return offset < end ? text.get(ValueLayout.JAVA_BYTE, offset) : JsonWindow.END;
    }

    private static int utf8Length(int codePoint) {
        if (codePoint < 0x80) {
            return 1;
        } else if (codePoint < 0x800) {
            return 2;
        }
        return codePoint < 0x10000 ? 3 : 4;
    }

    private static long putUtf8(int codePoint, MemorySegment target, long offset) {
        int length = utf8Length(codePoint);
        if (length == 1) {
            target.set(ValueLayout.JAVA_BYTE, offset, (byte) codePoint);
            return offset + 1;
        }
        int lead = 0xFF00 >> length & 0xFF;
        target.set(ValueLayout.JAVA_BYTE, offset, (byte) (lead | codePoint >> (6 * (length - 1))));
        for (int i = 1; i < length; i++) {
            int bits = codePoint >> (6 * (length - 1 - i)) & 0x3F;
            target.set(ValueLayout.JAVA_BYTE, offset + i, (byte) (0x80 | bits));
        }
        return offset + length;
    }
}
