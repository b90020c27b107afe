package dev.nereid.scheduler.oracle;

import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** An instance with its sequences, for the table of all sequences. Guarded by the lock of the sequences. */
interface SequenceInstance {
    /** Returns the lowest free slot for a new sequence; {@link Integer#MAX_VALUE} if there is none. */
    int lowestFree();

    int slotsUsed();

    /** Returns the number of slots that have a sequence or are free for new sequences. */
    int slots();

    /** Gives the lowest free slot to a sequence. */
    void place(LiveSequence sequence);

    void vacate(LiveSequence sequence);

    /** Records a request that waits here, or does not any more. */
    void count(ScheduledRequest request, int added);

    /** Records that the next request of a sequence may be taken, or not any more. */
    void changed(LiveSequence sequence, long now);

    /** Wakes the instance's own thread if there is a batch, or if it sleeps longer than the requests may wait. */
    void wakeForWork(long now);

    /** Ends a hold of batches, if there is one. */
    void endHold();

    /** Wakes the instance's own thread, if it has one. */
    void wakeThread();

    /** Acquires the idle instance for the calling thread, with a batch; {@code null} if that is not possible. */
    @Nullable
    InstanceHandle acquire(long now);

    /** Notifies the instance of a sequence that ended without its last request, before it takes another batch. */
    void sequenceEnded(InstanceHandle.EndedSequence sequence);

    /** Returns whether the instance takes no batches for a while. */
    boolean isUnavailable();

    /** Removes the waiting requests of the sequences, which end. */
    void removeWaiting(List<ScheduledRequest> removed);
}
