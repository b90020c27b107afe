package dev.nereid.http.body;

/**
 * Limits of request and response bodies. Immutable.
 *
 * @param maxJsonBytes the largest JSON text, and the largest tensor within one, that is accepted
 * @param maxRequestBytes the largest request body that is accepted
 * @param maxInlineBytes the longest JSON text, and the most bytes of tensors written as JSON, that an event loop
 *     processes itself; a worker processes longer ones
 */
public record BodyLimits(long maxJsonBytes, long maxRequestBytes, long maxInlineBytes) {
    /** The default limits. They are 64 MiB of JSON, 256 KiB of it on an event loop, and 2 GiB in all. */
    public static final BodyLimits DEFAULT = new BodyLimits(64L << 20, 2L << 30, 256L << 10);

    public BodyLimits {
        if (maxJsonBytes < 1 || maxJsonBytes > Integer.MAX_VALUE) {
            throw new IllegalArgumentException(
                    "http-max-input-size: " + maxJsonBytes + " (expected: 1 to " + Integer.MAX_VALUE + ")");
        }
        if (maxRequestBytes < maxJsonBytes) {
            throw new IllegalArgumentException(
                    "maxRequestBytes: " + maxRequestBytes + " (expected: >= " + maxJsonBytes + ")");
        }
        if (maxInlineBytes < 0) {
            throw new IllegalArgumentException("maxInlineBytes: " + maxInlineBytes + " (expected: >= 0)");
        }
    }
}
