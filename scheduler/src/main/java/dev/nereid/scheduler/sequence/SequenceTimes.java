package dev.nereid.scheduler.sequence;

import dev.nereid.scheduler.queue.QueueLock;
import dev.nereid.scheduler.time.Timeout;
import dev.nereid.scheduler.time.Timer;
import java.util.function.Consumer;
import org.jspecify.annotations.Nullable;

/**
 * Expires idle sequences, sequences in the backlog, and requests with a deadline. Guarded by the lock of the sequences;
 * one timeout is scheduled to the earliest time, or earlier.
 *
 * <p>All sequences may be idle for the same time, so a list has them in the order of their end.
 */
final class SequenceTimes {
    /** Longer idle times count as none, so that comparisons never overflow; 73 years. */
    private static final long NEVER = Long.MAX_VALUE / 4;

    private final QueueLock lock;
    private final Timeout timeout;
    private final long maxIdleNanos;
    private final SequenceList idle = new SequenceList();
    private final ExpiryHeap heap = new ExpiryHeap();

    /** {@code true} if the timeout is scheduled, or about to be. */
    private boolean scheduled;

    private long scheduledNanos;

    /** {@code true} if a schedule has failed, so that the next time is scheduled. Written without the lock. */
    private volatile boolean failed;

    /**
     * Creates times without any.
     *
     * @param action calls {@link #expire}, on the thread of the timer
     */
    SequenceTimes(QueueLock lock, Timer timer, long maxIdleNanos, Runnable action) {
        this.lock = lock;
        this.maxIdleNanos = maxIdleNanos;
        this.timeout = timer.newTimeout(action);
    }

    /** Returns the sequences without a request, the one that ends first in front. */
    SequenceList idle() {
        return idle;
    }

    /** Adds a sequence without a request, from now on. */
    void addIdle(LiveSequence sequence, long now) {
        sequence.nanos = now + maxIdleNanos;
        idle.add(sequence);
        scheduleNext();
    }

    /** Removes a sequence that is not idle any more. */
    void removeIdle(LiveSequence sequence) {
        idle.remove(sequence);
    }

    void add(Expiry expiry) {
        heap.add(expiry);
        scheduleNext();
    }

    /** Removes an expiry, if it is there. */
    void remove(@Nullable Expiry expiry) {
        heap.remove(expiry);
    }

    /**
     * Handles expired sequences and requests. Called by the timeout, under the lock; each call ends, since it removes
     * every expiry that it handles.
     *
     * @param onIdle ends a sequence that is removed from the idle ones
     */
    void expire(long now, Consumer<LiveSequence> onIdle) {
        scheduled = false;
        LiveSequence first = idle.first();
        while (first != null && maxIdleNanos < NEVER && now - first.nanos >= 0) {
            idle.remove(first);
            onIdle.accept(first);
            first = idle.first();
        }
        Expiry next = heap.peek();
        while (next != null && next.isPast(now)) {
            heap.remove(next);
            next.run();
            next = heap.peek();
        }
        scheduleNext();
    }

    private void scheduleNext() {
        LiveSequence first = maxIdleNanos < NEVER ? idle.first() : null;
        if (first != null) {
            schedule(first.nanos);
        }
        Expiry next = heap.peek();
        if (next != null) {
            schedule(next.nanos);
        }
    }

    private void schedule(long nanos) {
        if (scheduled && !failed && nanos - scheduledNanos >= 0) {
            return;
        }
        failed = false;
        scheduled = true;
        scheduledNanos = nanos;
        lock.later(() -> scheduleUnlocked(nanos));
    }

    private void scheduleUnlocked(long nanos) {
        boolean succeeded = false;
        try {
            timeout.scheduleAtLatest(nanos);
            succeeded = true;
        } finally {
            if (!succeeded) {
                failed = true;
            }
        }
    }

    void close() {
        timeout.close();
    }
}
