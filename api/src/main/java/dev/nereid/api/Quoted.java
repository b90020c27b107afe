package dev.nereid.api;

import java.util.List;
import java.util.stream.Collectors;

/**
 * Truncates client text to a length that error messages and logs can quote. Static functions only.
 *
 * <p>A client may send a name of many megabytes; the error that repeats it must not be as large.
 */
public final class Quoted {
    /** The number of characters, as {@link String#length()} counts them, that are quoted of one value. */
    public static final int MAX_LENGTH = 256;

    /** The number of values that are quoted of a list. */
    private static final int MAX_VALUES = 64;

    /** Follows a truncated value. */
    private static final String ELLIPSIS = "…";

    private Quoted() {}

    /**
     * Returns a value as errors quote it.
     *
     * @param value a text of a client
     * @return the text; of one with more than {@link #MAX_LENGTH} characters the beginning and an ellipsis
     */
    public static String text(String value) {
        if (value.length() <= MAX_LENGTH) {
            return value;
        }
        int end = Character.isHighSurrogate(value.charAt(MAX_LENGTH - 1)) ? MAX_LENGTH - 1 : MAX_LENGTH;
        return value.substring(0, end) + ELLIPSIS;
    }

    /**
     * Returns the prefix of error texts that name the request.
     *
     * @param id the client's name for the request; empty for none
     * @return the prefix with a space at its end
     */
    public static String requestPrefix(String id) {
        return "[request id: " + (id.isEmpty() ? "<id_unknown>" : text(id)) + "] ";
    }

    /**
     * Returns dimensions as errors quote them.
     *
     * @param dims the dimensions as received
     * @return {@code [1,-1]}, truncated as a text is
     */
    public static String dims(long[] dims) {
        StringBuilder text = new StringBuilder("[");
        for (int i = 0; i < dims.length && text.length() <= MAX_LENGTH; i++) {
            text.append(i == 0 ? "" : ",").append(dims[i]);
        }
        return text(text.append(']').toString());
    }

    /**
     * Returns names as errors list them.
     *
     * @param names the names
     * @return each name in quotation marks, separated by commas; an ellipsis in place of those beyond a bound
     */
    public static String names(List<String> names) {
        String listed = names.stream()
                .limit(MAX_VALUES)
                .map(name -> "'" + text(name) + "'")
                .collect(Collectors.joining(","));
        return names.size() > MAX_VALUES ? listed + "," + ELLIPSIS : listed;
    }
}
