package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;

/**
 * Forms batches of waiting requests, for the instances of one {@link BatchSource}. Guarded by the lock of the queue, which
 * the caller holds; no method calls foreign code under it.
 *
 * <p>The dynamic batcher forms them of the requests of a {@link RequestQueue}, for all instances of a model. With
 * sequences, each instance has a batcher for the sequences in its slots.
 */
public interface Batcher {
    /** Records an instance that is registered. It takes no batch yet. */
    default void registered(InstanceHandle handle) {}

    /** Records that an instance takes batches from now on. Called once for each instance. */
    default void opened() {}

    /** Returns whether there is nothing to take, now or when time passes. */
    boolean isEmpty();

    /** Returns whether there is a batch now. */
    boolean hasBatch(long now);

    /** Returns whether an instance has to check, since there may be a batch now. */
    default boolean mayHaveBatch(long now) {
        return hasBatch(now);
    }

    /** Returns whether requests wait that may wait for others, so that an instance should wait for time to pass. */
    default boolean needsLeader() {
        return !isEmpty();
    }

    /** Returns how long the waiting requests may wait for others. Called only if there are any. */
    long waitNanos(long now);

    /**
     * Returns whether a request that is added may have waited for longer than the requests that wait already, as with one of
     * a sequence that gets a slot.
     */
    default boolean mayWaitLess() {
        return false;
    }

    /** Returns the maximum number of batches that the waiting requests make. */
    long batches();

    /** Moves a batch, if any, of begun requests to an instance, and expired ones; returns the time at the return. */
    long take(InstanceHandle handle, long now);

    /**
     * Moves what an instance has to be notified of to it. Called also if the instance may take no batch.
     *
     * @param handle receives the sequences that ended
     */
    default void takeEnded(InstanceHandle handle) {}

    /** Returns whether an instance has to be notified of something. */
    default boolean hasEnded() {
        return false;
    }

    /** Returns whether only an instance's own thread may execute a waiting request. */
    boolean needsInstanceThread();

    /** Returns whether any thread may take a batch at once: no foreign code decides which requests make it. */
    default boolean isPlain() {
        return true;
    }

    /** Defers the wake-up of an instance while a batch is formed without the lock; returns whether one is. */
    default boolean defersWakeup() {
        return false;
    }

    /** Returns whether waiting requests are taken without delay, since no more are added. */
    boolean isStopped();

    /** Returns whether requests wait, or may be added or rescheduled. */
    boolean mayHaveWork();

    /** Adds no more to a retired instance; returns whether it may still take batches that are bound to it. */
    default boolean retire(InstanceHandle handle) {
        return false;
    }

    /** Gives up the requests in the executions of an instance with a thread that does not return. */
    void lose(InstanceHandle handle);

    /** Removes the waiting requests, which no instance executes; the caller completes them. */
    List<ScheduledRequest> removeWaiting();

    /**
     * Removes an instance, the last of its source if {@code isLast}; returns the requests that no remaining one can
     * execute, to be completed by the caller.
     */
    List<ScheduledRequest> deregister(InstanceHandle handle, boolean isLast);

    /** Applies a change of an instance's availability. */
    default void availabilityChanged(long now) {}
}
