package dev.nereid.spi;

/**
 * Registration of an action, such as one that runs when a request is cancelled. Safe for use by any thread.
 * <em>Implemented by the server.</em>
 *
 * <p>Close it before the objects that the action uses are freed.
 *
 * @since 1.0
 */
public interface CancelHook extends AutoCloseable {
    /**
     * Removes the action. When this returns the action does not run and never will: it waits for an action that
     * runs at the moment, unless called by the action itself. Later calls do nothing.
     */
    @Override
    void close();
}
