package dev.nereid.spi;

import java.time.Duration;
import java.util.function.LongConsumer;

/**
 * Work of a device that must end before a tensor may be read. Safe for use by any thread. <em>Implemented by the server
 * and by backends</em>, whichever passes the tensor.
 *
 * <p>A tensor may be passed on while the work is under way, so the methods may be called at any time: also after the
 * execution that passed the fence has ended, and after the memory of the tensor was released. The work has ended then.
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
     * @throws BackendException if the work failed, and has ended: the tensor has no content
     */
    boolean await(Duration timeout);

    /**
     * Passes the native event to an action, which lets a device wait for the work. The event is valid while the action
     * runs, and not after it. It says when the work has ended, not whether it succeeded: where work may fail although
     * the device works, {@link #await} says so afterwards. A backend appends the wait to its stream, before the work
     * that reads the tensor:
     * {@snippet :
     * if (!fence.withEvent(event -> waitFor(stream, event))) {
     *     fence.await(limit);
     * }
     * }
     *
     * @param action receives the handle of the event, for CUDA a {@code CUevent}. Runs at most once, on this thread;
     *     must not block. Its exceptions are passed on
     * @return whether the action ran; {@code false} if the work has ended, or if it has no such event. Then
     *     {@link #await} says whether the tensor may be read
     */
    default boolean withEvent(LongConsumer action) {
        return false;
    }
}
