package dev.nereid.scheduler.request;

import dev.nereid.api.NamedTensor;
import dev.nereid.scheduler.memory.ReferenceCountedMemory;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Adds control inputs, states and the receiver of state updates to one execution. Holds them beside the request.
 *
 * <p>A plain request adds nothing, and is its own holder. A source of batches that keeps sequences makes a new holder
 * for each execution. Confined to the thread that runs the instance, and then to the execution.
 */
public interface Executable {
    /** Returns the request; for a {@linkplain #isNull null request}, a request that nothing counts. */
    ScheduledRequest request();

    /** Returns the control inputs, and behind them the present states; they follow the inputs of the client. */
    default List<NamedTensor> added() {
        return List.of();
    }

    /**
     * Returns the memory of an added input. The request holds it until its execution has ended or its sender is ended;
     * an output that lies in it holds it until the response has gone. So the source never changes such memory: the next
     * value of a state goes to another buffer.
     *
     * @param index the index in {@link #added()}
     * @return the memory, of which the source holds a reference until {@link #released}; {@code null} for memory that is
     *     never freed or changed
     */
    default @Nullable ReferenceCountedMemory memory(int index) {
        return null;
    }

    /** Returns the receiver of state updates; {@code null} for a model without states. */
    default @Nullable StateSink states() {
        return null;
    }

    /** Returns whether no client sent the request: it fills a place of the batch. */
    default boolean isNull() {
        return false;
    }

    /**
     * Returns a null request that takes the place of this one, which failed before its execution.
     *
     * @param like another request of the batch, which did not fail
     * @return {@code null} if the requests behind this one may move up in the batch
     */
    default @Nullable Executable inPlace(Executable like) {
        return null;
    }

    /**
     * Called once when the execution has ended: its state updates are stored, and its terminal response, if any, was
     * passed to the observer, which may still hold it. Short; must not throw.
     *
     * <p>An action for all executions of a batch together does the work that takes a lock.
     *
     * @param before the action so far: the result of this method for the execution before in the batch; {@code null}
     *     for none
     * @return the action with this execution, to be run once by the caller when all of the batch have ended; {@code
     *     null} for none
     */
    default @Nullable Runnable released(boolean rescheduled, @Nullable Runnable before) {
        return before;
    }
}
