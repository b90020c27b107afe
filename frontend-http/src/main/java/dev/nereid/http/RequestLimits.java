package dev.nereid.http;

/**
 * How many parts a request may have. Far more than any model has, and few enough that what is noted of each part takes
 * no more memory than the request itself. Immutable.
 */
final class RequestLimits {
    /** How many inputs, outputs and parameters a request may have, of each. */
    static final int MOST_PARTS = 10_000;

    /** How many dimensions an input may have. */
    static final int MOST_DIMENSIONS = 255;

    private RequestLimits() {}

    /** Checks that there is room for one more part. */
    static void checkRoom(String parts, int count, int most) {
        if (count >= most) {
            throw JsonFields.invalid(parts + ": more than " + most + " (expected: at most " + most + ")");
        }
    }
}
