package dev.nereid.scheduler.ensemble;

/**
 * The limits of the requests to an ensemble. Immutable.
 *
 * @param maxInflightRequests the requests to one step that are in flight at a time, for all requests to the ensemble; 0
 *     for no limit
 * @param maxBufferedBytes the bytes of responses of decoupled steps that one request may keep for later steps
 */
public record EnsembleLimits(int maxInflightRequests, long maxBufferedBytes) {
    /** The bytes that a request may keep unless configured. */
    public static final long DEFAULT_BUFFERED_BYTES = 64L << 20;

    public EnsembleLimits {
        if (maxInflightRequests < 0) {
            throw new IllegalArgumentException("maxInflightRequests: " + maxInflightRequests + " (expected: >= 0)");
        }
        if (maxBufferedBytes < 0) {
            throw new IllegalArgumentException("maxBufferedBytes: " + maxBufferedBytes + " (expected: >= 0)");
        }
    }

    /** Creates limits of requests in flight to one step, 0 for none, with the default of buffered bytes. */
    public EnsembleLimits(int maxInflightRequests) {
        this(maxInflightRequests, DEFAULT_BUFFERED_BYTES);
    }
}
