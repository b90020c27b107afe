package dev.nereid.backend.python.environment;

import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * The text of a Python program without comments and texts in three quotes, which are replaced by spaces. Lines keep
 * their numbers. Immutable.
 */
record ProgramText(String code) {
    private static final int QUOTES = 3;
    private static final Pattern LINE = Pattern.compile("\n");

    static ProgramText of(String program) {
        StringBuilder code = new StringBuilder(program.length());
        int i = 0;
        while (i < program.length()) {
            char c = program.charAt(i);
            if (c == '#') {
                i = blank(program, i, endOfLine(program, i), code);
            } else if (c != '"' && c != '\'') {
                code.append(c);
                i++;
            } else if (program.startsWith(String.valueOf(c).repeat(QUOTES), i)) {
                i = blank(
                        program,
                        i,
                        endOfText(program, i + QUOTES, String.valueOf(c).repeat(QUOTES)),
                        code);
            } else {
                int end = Math.min(endOfText(program, i + 1, String.valueOf(c)), endOfLine(program, i));
                code.append(program, i, end);
                i = end;
            }
        }
        return new ProgramText(code.toString());
    }

    private static int blank(String program, int begin, int end, StringBuilder code) {
        for (int i = begin; i < end; i++) {
            code.append(program.charAt(i) == '\n' ? '\n' : ' ');
        }
        return end;
    }

    private static int endOfLine(String program, int begin) {
        int end = program.indexOf('\n', begin);
        return end < 0 ? program.length() : end;
    }

    private static int endOfText(String program, int begin, String quotes) {
        for (int i = begin; i < program.length(); i++) {
            if (program.charAt(i) == '\\') {
                i++;
            } else if (program.startsWith(quotes, i)) {
                return i + quotes.length();
            }
        }
        return program.length();
    }

    /** Returns the number of the line of a position, from 1. */
    int line(int position) {
        Matcher lines = LINE.matcher(code).region(0, position);
        int line = 1;
        while (lines.find()) {
            line++;
        }
        return line;
    }

    /** Returns the end of the block that begins at the start of a line: the next line that is not indented. */
    int endOfBlock(int begin) {
        int line = endOfLine(code, begin) + 1;
        while (line < code.length()) {
            char first = code.charAt(line);
            int end = endOfLine(code, line);
            if (!Character.isWhitespace(first) && first != ')') { // such as of base classes on separate lines
                return line;
            }
            line = end + 1;
        }
        return code.length();
    }
}
