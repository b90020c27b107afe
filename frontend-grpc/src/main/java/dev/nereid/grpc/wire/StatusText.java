package dev.nereid.grpc.wire;

import java.nio.charset.StandardCharsets;

/**
 * Truncates and percent-encodes messages for the header {@code grpc-message}. Clients refuse headers of more than 8
 * KiB, and with them the status.
 */
final class StatusText {
    /** The maximum length of an encoded message. */
    static final int MAX_ENCODED = 4096;

    private static final String ELLIPSIS = "…";
    private static final int ENCODED_ELLIPSIS = 9;
    private static final int MAX_ENCODED_CHAR = 9;
    private static final int ENCODED_BYTE = 3;

    private StatusText() {}

    /** Cuts a message that would be longer than {@link #MAX_ENCODED}. It is cut at the end of a character. */
    static String cut(String text) {
        if (text.length() <= MAX_ENCODED / MAX_ENCODED_CHAR) {
            return text;
        }
        int size = 0;
        int kept = 0;
        for (int at = 0; at < text.length(); ) {
            int codePoint = text.codePointAt(at);
            size += encodedSize(codePoint);
            if (size > MAX_ENCODED) {
                return text.substring(0, kept) + ELLIPSIS;
            }
            at += Character.charCount(codePoint);
            if (size <= MAX_ENCODED - ENCODED_ELLIPSIS) {
                kept = at;
            }
        }
        return text;
    }

    private static int encodedSize(int codePoint) {
        if (codePoint < 0x80) {
            return isPlain(codePoint) ? 1 : ENCODED_BYTE;
        }
        if (codePoint < 0x800) {
            return 2 * ENCODED_BYTE;
        }
        return codePoint < 0x1_0000 ? 3 * ENCODED_BYTE : 4 * ENCODED_BYTE;
    }

    private static boolean isPlain(int character) {
        return character >= ' ' && character < 0x7F && character != '%';
    }

    static String encoded(String text) {
        StringBuilder encoded = new StringBuilder(text.length());
        for (byte each : text.getBytes(StandardCharsets.UTF_8)) {
            if (isPlain(each)) {
                encoded.append((char) each);
            } else {
                encoded.append('%').append(String.format("%02X", each & 0xFF));
            }
        }
        return encoded.toString();
    }
}
