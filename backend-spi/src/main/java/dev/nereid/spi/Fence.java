package dev.nereid.spi;

import java.time.Duration;

/**
 * Work of a device that must end before a tensor may be read. Safe for use by any thread. <em>Implemented by the server
 * and by backends</em>, whichever passes the tensor.
 *
 * <p>Valid as long as the memory of the tensor: until its {@code release} runs, or until its provider ends its
 * validity.
 *
 * @since 1.0
 */
@Incubating
public interface Fence {
    /**
     * Says whether the work has ended. Never blocks.
     *
     * @return whether {@link #await} returns at once; {@code true} too for work that failed
     */
    boolean isDone();

    /**
     * Waits until the work has ended. Not for threads that must not block.
     *
     * @param timeout the limit on the wait
     * @return whether the work ended in time, so that the tensor may be read
     * @throws BackendException if the work failed: the tensor has no content
     */
    boolean await(Duration timeout) throws BackendException;

    /**
     * Returns the native event, for a device that waits itself.
     *
     * @return the handle of the event, for CUDA a {@code CUevent}; 0 for none
     */
    long event();
}
