package dev.nereid.http;

import dev.nereid.api.InferenceException;

/**
 * How many parts a request may have. Far more than any model has, and few enough that what is noted of each part takes
 * no more memory than the request itself. Immutable.
 */
final class RequestLimits {
    /** How many inputs, outputs and parameters a request may have, of each. */
    static final int MOST_PARTS = 10_000;

    /** How long the first line of a request may be, in bytes; the names of a model and its version are in it. */
    static final int LONGEST_REQUEST_LINE = 16 << 10;

    /** How large all headers of a request may be together, in bytes; tickets of some single sign-ons take half of it. */
    static final int LARGEST_HEADERS = 64 << 10;

    /** The requests of one connection that are decoded: one that is answered, and one that is answered next. */
    static final int MAX_IN_PROGRESS = 2;

    /** Large bodies come in pieces of this size; every piece has its price. */
    static final int MAX_CHUNK_BYTES = 64 << 10;

    private RequestLimits() {}

    /** Checks that there is room for one more part. */
    static void checkRoom(String parts, int count, int most) {
        if (count >= most) {
            throw InferenceException.tooLarge(parts + ": more than " + most + " (expected: at most " + most + ")");
        }
    }
}
