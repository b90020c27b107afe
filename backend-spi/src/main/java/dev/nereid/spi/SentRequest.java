package dev.nereid.spi;

/**
 * A request that was sent to another model. Safe for use by any thread. <em>Implemented by the server.</em>
 *
 * @since 1.0
 */
@Incubating
public interface SentRequest {
    /** Cancels the request. Its observer still gets its terminal call. Later calls do nothing. */
    void cancel();
}
