package dev.nereid.spi;

/**
 * Reasons for which a sequence ended without its last request. Open: later versions may add constants.
 *
 * @since 1.0
 */
public enum SequenceEnd {
    /** It had no request for longer than {@link SequenceBatching#maxIdle()}. */
    IDLE,
    /** One of its requests was cancelled while it waited. */
    CANCELLED,
    /** Another sequence of the same id started. */
    REPLACED,
    /** The model is unloaded, or the server stops. */
    UNLOADED
}
