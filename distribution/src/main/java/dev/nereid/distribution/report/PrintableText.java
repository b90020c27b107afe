package dev.nereid.distribution.report;

import java.util.regex.Pattern;

/** Removes characters that control a terminal from texts of tables. Static functions only. */
final class PrintableText {
    /** Line breaks, control characters, marks of direction, and halves of characters. */
    private static final String UNPRINTABLE = "\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Cs}";

    private static final Pattern BLANKS = Pattern.compile("[\\s" + UNPRINTABLE + "]+");
    private static final Pattern BLANK = Pattern.compile("[" + UNPRINTABLE + "]");

    private PrintableText() {}

    /** Returns a text with one blank for each run of blanks and unprintable characters, without those at its ends. */
    static String of(String text) {
        return BLANKS.matcher(text).replaceAll(" ").strip();
    }

    /** Returns a line with a blank for each unprintable character, so that columns stay, without blanks at its end. */
    static String ofLine(String line) {
        return BLANK.matcher(line).replaceAll(" ").stripTrailing();
    }
}
