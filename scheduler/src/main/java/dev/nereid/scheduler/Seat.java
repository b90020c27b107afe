package dev.nereid.scheduler;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;

/**
 * The place of one instance at its model's queue. The lists are confined to the thread that runs the instance; the rest
 * is guarded by the lock of the queue.
 */
final class Seat {
    /** Signalled for this instance alone, so that a request wakes one instance, and the right one. */
    final Condition called;

    /** Whether the instance waits and was not called; guarded by the lock of the queue. */
    boolean waiting;

    /** The requests that have begun and make the next batch; filled by the queue, emptied by the instance. */
    final List<ScheduledRequest> taken = new ArrayList<>();

    /** The requests that came to their deadline in the queue; filled by the queue, emptied by the instance. */
    final List<ScheduledRequest> expired = new ArrayList<>(0);

    Seat(Condition called) {
        this.called = called;
    }
}
