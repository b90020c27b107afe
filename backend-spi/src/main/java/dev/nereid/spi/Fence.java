package dev.nereid.spi;

/**
 * Work of a device that must end before a tensor may be read. Safe for use by any thread. <em>Implemented by the party
 * that passes the tensor.</em>
 *
 * @since 1.0
 */
@Incubating
public interface Fence {
    /**
     * Says whether the work has ended. Never blocks.
     *
     * @return whether the tensor may be read
     */
    boolean isDone();

    /**
     * Waits until the work has ended.
     *
     * @throws BackendException if the work failed: the tensor has no content
     */
    void await() throws BackendException;

    /**
     * Returns the native event, for a device that waits itself.
     *
     * @return the address of the event, for CUDA a {@code CUevent}; 0 for none
     */
    long event();
}
