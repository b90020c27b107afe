package dev.nereid.spi.cache;

/**
 * Receives the outcome of an insert: one of the methods, once, on any thread. They return quickly and throw nothing;
 * the content of the insert must not be read any more once one was called. <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
public interface InsertObserver {
    /** The response is stored; the cache may evict it at any time after. */
    void stored();

    /** A response of the same key was stored already, and stays. */
    void exists();

    /** The cache refuses the response: it is too large. */
    void refused();

    /**
     * The cache could not store the response.
     *
     * @param reason one line of text for the log
     */
    void failed(String reason);
}
