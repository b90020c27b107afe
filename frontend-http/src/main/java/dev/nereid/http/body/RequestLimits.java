package dev.nereid.http.body;

import dev.nereid.api.InferenceException;

/**
 * Limits of HTTP requests: parts, request line, headers. Far more than any model has, and few enough that what is
 * noted of each part takes no more memory than the request itself. Immutable.
 */
public final class RequestLimits {
    /** How many inputs, outputs and parameters a request may have, of each. */
    public static final int MAX_PARTS = 10_000;

    /** How long the first line of a request may be, in bytes; the names of a model and its version are in it. */
    public static final int MAX_REQUEST_LINE_BYTES = 16 << 10;

    /** How large all headers of a request may be together, in bytes; tickets of some single sign-ons take half of it. */
    public static final int MAX_HEADER_BYTES = 64 << 10;

    /** The requests of one connection that are decoded: one that is answered, and one that is answered next. */
    public static final int MAX_IN_PROGRESS = 2;

    /** Large bodies come in pieces of this size; every piece has its price. */
    public static final int MAX_CHUNK_BYTES = 64 << 10;

    private RequestLimits() {}

    /** Checks that there is room for one more part. */
    public static void checkCount(String parts, int count, int most) {
        if (count >= most) {
            throw InferenceException.tooLarge(parts + ": more than " + most + " (expected: at most " + most + ")");
        }
    }
}
