package dev.nereid.backend.python.report;

import static java.nio.charset.StandardCharsets.UTF_8;

import dev.nereid.backend.python.frame.FrameException;
import dev.nereid.backend.python.frame.FrameReader;
import java.util.regex.Pattern;

/** Reads texts of frames within limits. Static functions only. */
final class ReportTexts {
    private static final Pattern UNPRINTABLE =
            Pattern.compile("[\\p{Cntrl}\\u0080-\\u009f\\u2028-\\u202e\\u2066-\\u2069]");

    private ReportTexts() {}

    /**
     * Reads a text of at most {@code limit} bytes.
     *
     * @param frame the frame, at the length of the text
     * @throws FrameException if it is longer; names the field
     */
    static String within(FrameReader frame, String field, int limit) {
        long length = frame.u32(field);
        if (length > limit) {
            throw new FrameException(field + ": " + length + " bytes (expected: at most " + limit + ")");
        }
        return frame.text(field, length);
    }

    /**
     * Reads a text, and keeps its beginning.
     *
     * @param frame the frame, at the length of the text
     * @param field what the text is, for errors
     * @param limit the maximum length of the result in bytes, but for a note
     * @return the text; of a longer one the beginning, and the number of bytes that are missing
     */
    static String cut(FrameReader frame, String field, int limit) {
        byte[] bytes = frame.bytes(field, frame.u32(field));
        if (bytes.length <= limit) {
            return new String(bytes, UTF_8);
        }
        int end = limit;
        while (end > limit - 3 && (bytes[end] & 0xc0) == 0x80) { // the rest of a character
            end--;
        }
        return new String(bytes, 0, end, UTF_8) + " … (" + (bytes.length - end) + " more bytes)";
    }

    /** Returns a name of a model for one line of the log: of limited length, without line breaks and the like. */
    static String quoted(String name, int limit) {
        String shown = name.length() <= limit ? name : name.substring(0, limit) + "…";
        return "'" + UNPRINTABLE.matcher(shown).replaceAll("?") + "'";
    }
}
