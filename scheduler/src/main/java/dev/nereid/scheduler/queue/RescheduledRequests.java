package dev.nereid.scheduler.queue;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.request.IndependentCalls;
import dev.nereid.scheduler.request.Rescheduler;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Queues rescheduled requests of a model. Guarded by the lock of the queue; requests are completed outside of it.
 *
 * <p>A request goes behind the others of its level. Limits of the queue and its timeout do not apply any more, since the
 * request was admitted; the deadline of its client does. A stopped queue takes it too.
 */
final class RescheduledRequests {
    private final QueueLock lock;
    private final EqualInputs equalInputs;
    private final Consumer<QueueEntry> remover;
    private final DeadlineTimer deadlineTimer;
    private final LongSupplier nanoTime;

    @GuardedBy("lock")
    private final WaitingRequests requests;

    @GuardedBy("lock")
    private final RequestBatcher batcher;

    @GuardedBy("lock")
    private final IdleInstances idleInstances;

    /** Creates the object for one queue. {@code remover} removes an entry from the queue, if it is there. */
    RescheduledRequests(
            QueueLock lock,
            RequestBatcher batcher,
            IdleInstances idleInstances,
            EqualInputs equalInputs,
            Consumer<QueueEntry> remover,
            DeadlineTimer deadlineTimer) {
        this.lock = lock;
        this.batcher = batcher;
        this.requests = batcher.requests();
        this.nanoTime = batcher.nanoTime();
        this.idleInstances = idleInstances;
        this.equalInputs = equalInputs;
        this.remover = remover;
        this.deadlineTimer = deadlineTimer;
    }

    /** Returns the receiver of requests after executions of one instance. */
    Rescheduler of(InstanceHandle handle) {
        return new Rescheduler() {
            @Override
            public Rescheduler.Position newPosition(ScheduledRequest request) {
                return new QueueEntry(request, equalInputs.content(request.checked()), remover);
            }

            @Override
            public void reschedule(int ended, List<ScheduledRequest> rescheduled) {
                RescheduledRequests.this.reschedule(handle, ended, rescheduled);
            }
        };
    }

    private void reschedule(InstanceHandle handle, int ended, List<ScheduledRequest> rescheduled) {
        Added added = null;
        try {
            added = add(handle, ended, rescheduled);
        } finally {
            if (added == null) { // no other thread would complete them
                IndependentCalls.rejectAll(rescheduled, RescheduledRequests::notQueued, FailureReason.OTHER);
            }
        }
        try {
            deadlineTimer.schedule(added.next());
        } finally {
            completeUnqueued(rescheduled, added.left());
        }
    }

    /** Completes the requests for which no instance is left, or that were cancelled meanwhile. */
    private void completeUnqueued(List<ScheduledRequest> rescheduled, boolean left) {
        if (left) {
            IndependentCalls.forEach(rescheduled, ScheduledRequest::checkQueued);
        } else {
            IndependentCalls.rejectAll(
                    rescheduled, request -> SchedulerErrors.noInstance(request.checked()), FailureReason.OTHER);
        }
        if (!rescheduled.isEmpty()) {
            refuseStranded();
        }
    }

    private static InferenceException notQueued(ScheduledRequest request) {
        return SchedulerErrors.internal(new IllegalStateException(
                "request '" + Quoted.text(request.checked().id()) + "' was not queued again"));
    }

    private void refuseStranded() {
        List<ScheduledRequest> stranded;
        lock.lock();
        try {
            stranded = idleInstances.removeStranded();
        } finally {
            lock.unlock();
        }
        BatchSource.refuse(stranded);
    }

    /**
     * The result of {@link #add}.
     *
     * @param left whether an instance is left for the requests
     * @param next the deadline to schedule; {@code null} for none
     */
    private record Added(boolean left, @Nullable Deadline<QueueEntry> next) {}

    private Added add(InstanceHandle handle, int ended, List<ScheduledRequest> rescheduled) {
        lock.lock();
        try {
            batcher.executionsEnded(handle, ended);
            boolean left = !idleInstances.hasNoInstances();
            if (left) {
                addAll(rescheduled);
            }
            if (!batcher.mayHaveWork()) {
                idleInstances.wakeAll(); // stopped: no request is rescheduled any more
            } else if (!rescheduled.isEmpty()) {
                batcher.added();
                idleInstances.wakeOne(nanoTime.getAsLong());
            }
            return new Added(left, deadlineTimer.reserve(requests.timeouts().next()));
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private void addAll(List<ScheduledRequest> rescheduled) {
        for (ScheduledRequest request : rescheduled) {
            if (request.isWaiting()) { // if not, it was completed meanwhile, and its memory released
                requests.addAgain(entry(request));
            }
        }
    }

    private static QueueEntry entry(ScheduledRequest request) {
        if (request.position() instanceof QueueEntry entry) {
            return entry;
        }
        throw new IllegalStateException("position: " + request.position() + " (expected: of this queue)");
    }
}
