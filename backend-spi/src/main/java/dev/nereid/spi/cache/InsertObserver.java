package dev.nereid.spi.cache;

/**
 * Receives the outcome of an insert: one of the methods, once, on any thread. They return quickly and throw nothing;
 * the content of the insert must not be read any more once one was called. <em>Implemented by the server.</em>
 */
public interface InsertObserver {
    /** Tells that the response is kept; the cache may drop it at any time after. */
    void stored();

    /** Tells that a response of the same key was kept already, and stays. */
    void exists();

    /** Tells that the cache does not want the response: it is too large. */
    void refused();

    /**
     * Tells that the cache could not keep it.
     *
     * @param reason one line of text for the log
     */
    void failed(String reason);
}
