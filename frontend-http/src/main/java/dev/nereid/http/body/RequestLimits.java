package dev.nereid.http.body;

import dev.nereid.api.InferenceException;

/**
 * Limits of HTTP requests: parts, request line, headers. They are far above the needs of models, and low enough that
 * the bookkeeping of a request takes no more memory than the request itself. Immutable.
 */
public final class RequestLimits {
    /** The maximum number of inputs, of outputs and of parameters of a request. */
    public static final int MAX_PARTS = 10_000;

    /** The maximum length of a request line. The line has the names of a model and its version. */
    public static final int MAX_REQUEST_LINE_BYTES = 16 << 10;

    /** The maximum size of a request's headers. Tokens of some single sign-on systems take half of it. */
    public static final int MAX_HEADER_BYTES = 64 << 10;

    /** The maximum number of decoded requests of one connection. They are the current one, and a pipelined one. */
    public static final int MAX_IN_PROGRESS = 2;

    /** The size of the pieces in which the transport delivers large bodies. Each piece has a cost. */
    public static final int MAX_CHUNK_BYTES = 64 << 10;

    private RequestLimits() {}

    public static void checkCount(String parts, int count, int max) {
        if (count >= max) {
            throw InferenceException.tooLarge(parts + ": more than " + max + " (expected: at most " + max + ")");
        }
    }
}
