package dev.nereid.http.json;

import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.nio.charset.StandardCharsets;

/**
 * Creates the errors of invalid JSON, with the reference server's texts. Static functions only.
 *
 * <p>Each begins with the text of the reference server; the path, the expected and the actual value follow. Their code
 * is that of an internal error, as in the reference server, unless the server is configured otherwise.
 */
public final class JsonErrors {
    public static final String NO_MEMBERS = "attempt to get members for non-object";
    static final String NOT_ARRAY = "attempt to access JSON non-array as array";
    public static final String NOT_BOOLEAN = "attempt to access JSON non-boolean as boolean";
    static final String NOT_NUMBER = "attempt to access JSON non-number as double";
    public static final String NOT_OBJECT = "attempt to access JSON non-object as object";
    static final String NOT_SIGNED = "attempt to access JSON non-signed-integer as signed-integer";
    public static final String NOT_STRING = "attempt to access JSON non-string as string";
    public static final String NOT_UNSIGNED = "attempt to access JSON non-unsigned-integer as unsigned-integer";

    /** The maximum number of bytes read to describe a value. */
    private static final int MAX_BYTES = 4 * Quoted.MAX_LENGTH;

    /** The maximum length of a quoted snippet of malformed text. */
    private static final int MAX_SNIPPET = 16;

    private JsonErrors() {}

    static InferenceException syntax(String problem, int position, MemorySegment text) {
        return InferenceException.clientError("failed to parse the request JSON buffer: " + problem + " at " + position
                + "; expected " + expected(problem) + ", got " + snippet(text, position));
    }

    /** Returns the error of a value of the wrong type, with the text of the reference server and the actual value. */
    public static InferenceException value(String text, String path, String expected, String got) {
        return InferenceException.clientError(text + "; " + path + ": expected " + expected + ", got " + got);
    }

    /** Returns the expected value for one of the problems above. */
    public static String expectedFor(String problem) {
        return switch (problem) {
            case NOT_ARRAY -> "an array";
            case NOT_BOOLEAN -> "true or false";
            case NOT_NUMBER -> "a number";
            case NOT_OBJECT, NO_MEMBERS -> "an object";
            case NOT_SIGNED -> "a whole number from -9223372036854775808 to 9223372036854775807";
            case NOT_STRING -> "a string";
            case NOT_UNSIGNED -> "a whole number from 0 to 18446744073709551615";
            default -> "another value";
        };
    }

    private static String expected(String problem) {
        return switch (problem) {
            case "Invalid value." -> "an object, an array, a string, a number, true, false or null";
            case "The document is empty." -> "an object";
            case "The document root must not be followed by other values." -> "the end of the text";
            case "Missing a name for object member." -> "a name in double quotes";
            case "Missing a colon after a name of object member." -> "':'";
            case "Missing a comma or '}' after an object member." -> "',' or '}'";
            case "Missing a comma or ']' after an array element." -> "',' or ']'";
            case "Missing a closing quotation mark in string." -> "'\"'";
            case "Invalid encoding in string." -> "an escape in place of a control character";
            case "Invalid escape character in string." -> "one of \\\" \\\\ \\/ \\b \\f \\n \\r \\t and \\u";
            case "The surrogate pair in string is invalid." -> "two escapes, of a high and a low surrogate";
            case "Incorrect hex digit after \\u escape in string." -> "four hexadecimal digits";
            case "Number too big to be stored in double." -> "a number of at most 1.7976931348623157e308";
            case "Miss fraction part in number.", "Miss exponent in number." -> "a digit";
            default -> "JSON";
        };
    }

    /** Describes the value at an offset of a valid text. Scalars are as written, truncated if they are long. */
    static String describe(MemorySegment text, int at) {
        String rest = rest(text, at, MAX_BYTES);
        if (rest.isEmpty()) {
            return "nothing";
        }
        return switch (rest.charAt(0)) {
            case '{' -> "an object";
            case '[' -> "an array";
            case '"' -> Quoted.text(rest.substring(0, endOfString(rest)));
            default -> Quoted.text(rest.substring(0, endOfWord(rest)));
        };
    }

    private static int endOfString(String rest) {
        int at = 1;
        while (at < rest.length() && rest.charAt(at) != '"') {
            at += rest.charAt(at) == '\\' ? 2 : 1;
        }
        return Math.min(rest.length(), at + 1);
    }

    private static int endOfWord(String rest) {
        int at = 0;
        while (at < rest.length() && ",]}: \t\r\n".indexOf(rest.charAt(at)) < 0) {
            at++;
        }
        return at;
    }

    private static String snippet(MemorySegment text, int position) {
        String rest = rest(text, position, MAX_SNIPPET);
        return rest.isEmpty() ? "the end of the text" : "'" + rest + "'";
    }

    private static String rest(MemorySegment text, int at, int maxBytes) {
        int length = Math.clamp(text.byteSize() - at, 0, maxBytes);
        byte[] bytes = text.asSlice(Math.min(at, text.byteSize()), length).toArray(ValueLayout.JAVA_BYTE);
        return new String(bytes, StandardCharsets.UTF_8);
    }
}
