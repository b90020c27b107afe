package dev.nereid.scheduler.sequence;

import dev.nereid.scheduler.queue.InstanceHandle;

/** Decides which requests of the sequences of one instance make a batch. Guarded by the lock of the sequences. */
interface SlotStrategy {
    /** Records that a sequence changed: its next request may be taken now, or not any more. */
    void changed(LiveSequence sequence, long now);

    /** Called once, when the instance takes no more batches. */
    default void close() {}

    /** Ends a hold of batches of this instance alone, if there is one. */
    void endHold();

    /** Returns whether there is nothing to take, now or when time passes. */
    boolean isEmpty();

    boolean hasBatch(long now, boolean hurry);

    /** Returns how long requests that make no batch now may wait for others. Called only if there are any. */
    long waitNanos(long now);

    /**
     * Begins the requests of a batch, if there is one.
     *
     * @param handle receives them
     * @param hurry whether to take them without delay, since no more are added
     */
    void take(InstanceHandle handle, long now, boolean hurry);
}
