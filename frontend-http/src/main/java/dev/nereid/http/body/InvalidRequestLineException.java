package dev.nereid.http.body;

import dev.nereid.api.Quoted;
import java.net.HttpURLConnection;
import java.util.regex.Pattern;
import org.jspecify.annotations.Nullable;

/** A request line that is not one of HTTP/1.1 or HTTP/1.0. Its message names the fault. */
public final class InvalidRequestLineException extends IllegalArgumentException {
    private static final long serialVersionUID = 1;

    private static final Pattern VERSION = Pattern.compile("HTTP/\\d\\.\\d");
    private static final String EXPECTED = " (expected: METHOD PATH HTTP/1.1)";
    private static final String VERSIONS = "expected: HTTP/1.1 or HTTP/1.0";

    private final int status;

    private InvalidRequestLineException(String problem, int status, @Nullable Throwable cause) {
        super("request line: " + problem, cause);
        this.status = status;
    }

    private static InvalidRequestLineException of(String problem, @Nullable Throwable cause) {
        return new InvalidRequestLineException(problem, HttpURLConnection.HTTP_BAD_REQUEST, cause);
    }

    /**
     * Checks the version of a request line.
     *
     * @param path the second word; empty if there is none
     * @param version the rest of the line; empty if there is none
     * @throws InvalidRequestLineException if the version is not supported
     */
    public static void checkVersion(String path, String version) {
        if (version.equals("HTTP/1.1") || version.equals("HTTP/1.0")) {
            return;
        }
        if (version.isEmpty()) {
            throw of((path.isEmpty() ? "no path and no version" : "no version") + EXPECTED, null);
        }
        if (VERSION.matcher(version).matches()) {
            throw new InvalidRequestLineException(
                    version + " (" + VERSIONS + ")", HttpURLConnection.HTTP_NOT_IMPLEMENTED, null);
        }
        boolean hasBlank = version.indexOf(' ') >= 0 || version.indexOf('\t') >= 0;
        String hint = hasBlank ? "; a blank in a path is written as %20" : "";
        throw of("version '" + Quoted.text(version) + "' (" + VERSIONS + hint + ")", null);
    }

    /** Returns the exception for a method with characters that no method has. */
    public static InvalidRequestLineException ofMethod(String method, Throwable cause) {
        return of("method '" + Quoted.text(method) + "' (expected: a word such as GET or POST)", cause);
    }

    /** Returns the exception for a line that ends with LF alone. */
    public static InvalidRequestLineException withoutCarriageReturn(Throwable cause) {
        return of("ends with LF alone (expected: CR LF)", cause);
    }

    /** Returns the exception for a line with characters that may not be in it. */
    public static InvalidRequestLineException ofCharacters(Throwable cause) {
        return of("a character that is not allowed" + EXPECTED, cause);
    }

    int status() {
        return status;
    }
}
