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
