package dev.nereid.backend.python.process;

import static java.nio.charset.StandardCharsets.UTF_8;

/** Texts of bytes that a process prints. Static functions only. */
final class OutputText {
    private static final String HEX = "0123456789abcdef";

    private OutputText() {}

    /**
     * Returns the text of a line: UTF-8 with a replacement for malformed bytes, and control characters but tabs
     * escaped, so that it is one line in any terminal.
     *
     * @param bytes holds the line
     * @param more the number of bytes that were cut off
     * @return the text, with the number of bytes that are missing
     */
    static String of(byte[] bytes, int length, long more) {
        int whole = more > 0 ? whole(bytes, length) : length;
        String text = escaped(new String(bytes, 0, whole, UTF_8));
        return more > 0 ? text + " … (" + (more + length - whole) + " more bytes)" : text;
    }

    /** Returns whether a line shows nothing. */
    static boolean isBlank(byte[] bytes, int length) {
        for (int i = 0; i < length; i++) {
            if (bytes[i] != ' ' && bytes[i] != '\t') {
                return false;
            }
        }
        return true;
    }

    /** Returns the length without a character at the end of which bytes are missing. */
    private static int whole(byte[] bytes, int length) {
        int start = length - 1;
        while (start > 0 && length - start < 4 && (bytes[start] & 0xc0) == 0x80) {
            start--;
        }
        if (start < 0) {
            return length;
        }
        int first = Byte.toUnsignedInt(bytes[start]);
        int size = first < 0xc0 ? 1 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
        return size > length - start ? start : length;
    }

    private static String escaped(String text) {
        int index = 0;
        while (index < text.length() && !isEscaped(text.charAt(index))) {
            index++;
        }
        if (index == text.length()) {
            return text;
        }
        StringBuilder escaped = new StringBuilder(text.length() + 64).append(text, 0, index);
        for (; index < text.length(); index++) {
            char c = text.charAt(index);
            if (!isEscaped(c)) {
                escaped.append(c);
            } else if (c < 0x100) {
                escaped.append("\\x").append(digit(c, 4)).append(digit(c, 0));
            } else {
                escaped.append("\\u").append(digit(c, 12)).append(digit(c, 8));
                escaped.append(digit(c, 4)).append(digit(c, 0));
            }
        }
        return escaped.toString();
    }

    private static char digit(char c, int shift) {
        return HEX.charAt(c >> shift & 15);
    }

    /** Control characters, line separators, and marks that change the direction of a text. */
    private static boolean isEscaped(char c) {
        return (c < ' ' && c != '\t')
                || (c >= 0x7f && c < 0xa0)
                || (c >= 0x2028 && c <= 0x202e)
                || (c >= 0x2066 && c <= 0x2069);
    }
}
