package dev.nereid.spi.cache;

/**
 * Receives the outcome of a lookup: one of the methods, once, on any thread. They return quickly and throw nothing.
 * <em>Implemented by the server.</em>
 */
public interface LookupObserver {
    /**
     * Tells of a response that is kept.
     *
     * @param entry the response, owned by the receiver
     */
    void found(CacheEntry entry);

    /** Tells that no response is kept under the key. */
    void missing();

    /**
     * Tells that the cache could not look.
     *
     * @param reason one line of text for the log
     */
    void failed(String reason);
}
