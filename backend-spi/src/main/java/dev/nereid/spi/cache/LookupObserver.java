package dev.nereid.spi.cache;

/**
 * Receives the outcome of a lookup: one of the methods, once, on any thread. They return quickly and throw nothing.
 * <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
public interface LookupObserver {
    /**
     * The cache holds a response.
     *
     * @param entry the response, owned by the receiver
     */
    void found(CacheEntry entry);

    /** The cache holds no response of the key. */
    void missing();

    /**
     * The lookup failed.
     *
     * @param reason one line of text for the log
     */
    void failed(String reason);
}
