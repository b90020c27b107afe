package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.request.Executable;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.spi.Sequence;
import dev.nereid.spi.SequenceEnd;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The handle of one instance at the queue of its model. The lists are confined to the thread that runs the instance;
 * the rest is guarded by the lock of the queue.
 *
 * <p>A thread that offers a request may acquire an idle instance of short executions: it runs the instance while the
 * instance's own thread waits on, and then releases it.
 */
public final class InstanceHandle implements OfferResult {
    /** Runs the instance on the thread that acquired it, and releases it. */
    final Runnable directRun;

    /** The load of the instance by the rate limiter; always 0 without limits. */
    final LongSupplier load;

    /**
     * The instance's own thread, while it takes batches; guarded by the lock of the queue. For an instance without a
     * thread it is the thread that waits to remove the instance.
     */
    @Nullable
    Thread thread;

    /** Starts the instance's own thread; guarded likewise. {@code null} if the thread lasts until the end. */
    @Nullable
    Runnable starter;

    /** {@code true} if the instance's own thread was woken to end, unless there is work; guarded likewise. */
    boolean resting;

    /** The time at which the instance's own thread began to wait for work; guarded likewise. */
    long idleNanos;

    /** {@code true} if a thread is about to start the instance's own thread, and owns the handle; guarded likewise. */
    boolean starting;

    /** {@code true} if its own thread waits and is not woken, or is to be started when woken; guarded likewise. */
    boolean waiting;

    /** The instance that became idle before this one and still is. Present if this one is idle; guarded likewise. */
    @Nullable
    InstanceHandle idleBefore;

    /** {@code true} if only its own thread may run it, since it is placed. Set before the instance first waits. */
    boolean placed;

    /** {@code true} if the instance takes no more batches; guarded by the lock of the queue. */
    boolean retired;

    /** {@code true} if the instance is retired but for the batches that are bound to it; guarded likewise. */
    boolean bound;

    /** {@code true} if the instance has begun to take batches; guarded likewise. */
    boolean opened;

    /** The number of deferred executions at which the instance takes no batch. Set before the instance first waits. */
    int maxDeferred = Integer.MAX_VALUE;

    /** The number of deferred executions that have not ended; guarded by the lock of the queue. */
    int deferred;

    /** {@code true} if its backend marked it as unavailable; guarded likewise. */
    boolean unavailable;

    /** {@code true} if the instance is not registered any more; guarded likewise. */
    boolean deregistered;

    /** {@code true} if the instance waits until it may take a batch, not for work; guarded likewise. */
    boolean blocked;

    /** The number of requests that it took and that may be rescheduled; guarded likewise. */
    int out;

    /** {@code true} if the thread that executes does not return; guarded likewise. */
    boolean lost;

    /** Takes requests back from executions; {@code null} if none is rescheduled. Set at the registration. */
    @Nullable
    Rescheduler rescheduler;

    /** The begun requests of the next batch; filled by the queue, emptied by the instance. */
    final List<Executable> taken = new ArrayList<>();

    /** The requests that expired in the queue; filled by the queue, emptied by the instance. */
    final List<Deadline<QueueEntry>> expired = new ArrayList<>(0);

    /** The sequences that ended; filled by the source, emptied by the instance. */
    private final List<EndedSequence> ended = new ArrayList<>(0);

    /** Creates a handle, for a source of batches. {@code directRun} runs the instance on the acquiring thread. */
    public InstanceHandle(Runnable directRun, LongSupplier load) {
        this.directRun = directRun;
        this.load = load;
    }

    /** Returns the requests of the next batch, to be removed by the instance. */
    public List<Executable> taken() {
        return taken;
    }

    /** Returns the sequences that ended without their last request, to be removed by the instance. */
    public List<EndedSequence> ended() {
        return ended;
    }

    public void rejectExpired() {
        if (!expired.isEmpty()) {
            QueueTimeouts.rejectAll(expired);
        }
    }

    /** Returns the receiver of requests after executions; {@code null} if none is rescheduled. */
    public @Nullable Rescheduler rescheduler() {
        return rescheduler;
    }

    /** Sets the receiver of requests after executions. Called by a source of batches at the registration. */
    public void setRescheduler(Rescheduler rescheduler) {
        this.rescheduler = rescheduler;
    }

    /** Limits the deferred executions; the lowest limit applies. Called before the instance first waits. */
    public void limitDeferred(int limit) {
        maxDeferred = Math.min(maxDeferred, limit);
    }

    /** Permits the own thread to end without work; {@code start} is as in {@link WorkSource#addUnstarted}. */
    public void restartBy(Runnable start) {
        starter = start;
    }

    /** Returns whether the instance is unavailable, or has as many deferred executions as it may have. */
    boolean isFull() {
        return unavailable || deferred >= maxDeferred;
    }

    /** Restricts the instance to its own thread. Called before the instance first waits. */
    public void pin() {
        placed = true;
    }

    /** Returns whether its backend marked the instance as unavailable. The caller holds the lock of the queue. */
    public boolean isUnavailable() {
        return unavailable;
    }

    /** Returns the number of deferred executions at which the instance takes no batch. */
    public int maxDeferred() {
        return maxDeferred;
    }

    /** Returns the action that runs the instance on the calling thread, which acquired it for direct execution. */
    public Runnable directRun() {
        return directRun;
    }

    /** A sequence that ended on an instance without its last request. Immutable. */
    public record EndedSequence(Sequence.Id id, SequenceEnd reason) {}
}
