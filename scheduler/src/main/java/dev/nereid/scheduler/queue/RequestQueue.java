package dev.nereid.scheduler.queue;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.scheduler.batch.BatchPlanner;
import dev.nereid.scheduler.batch.EqualInputs;
import dev.nereid.scheduler.batch.StrategyBatcher;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.time.Timer;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Consumer;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Queues the waiting requests of one model. Guarded by its lock, the one lock of the model's scheduler; no backend,
 * observer or other foreign code is called under it.
 *
 * <p><b>Pull.</b> Callers of {@link #offer} add requests; each instance takes its next batch itself from
 * {@link #batches} when it is free. No dispatcher thread stands between them, so a request costs one wake-up at most,
 * and none while all instances are busy: see {@link IdleInstances}.
 *
 * <p><b>Deadlines.</b> One timeout is scheduled to the earliest deadline of a request, or earlier: see
 * {@link DeadlineTimer}. A thread that takes a batch first removes the expired requests, whether the timeout fired or
 * not. Expired requests are removed under the lock, and rejected outside of it.
 */
public final class RequestQueue implements ModelQueue {
    private final LongSupplier nanoTime;
    private final EqualInputs equalInputs;
    private final DeadlineTimer deadlineTimer;
    private final Consumer<QueueEntry> remover = this::remove;
    private final BatchSource batches;
    private final QueueLock lock = new QueueLock();

    /** The requests that the timeout has removed and not rejected yet. Confined to the thread of the timer. */
    private final List<Deadline<QueueEntry>> expired = new ArrayList<>(0);

    @GuardedBy("lock")
    private final WaitingRequests requests;

    @GuardedBy("lock")
    private final RequestBatcher batcher;

    @GuardedBy("lock")
    private final IdleInstances idleInstances;

    @GuardedBy("lock")
    private final UnqueuedBatch unqueued;

    /** Creates an empty queue. Holds one of the timer's timeouts until the close; {@code null} for no strategy. */
    public RequestQueue(
            BatchPlanner planner,
            PriorityPolicy priorities,
            EqualInputs equalInputs,
            LongSupplier nanoTime,
            Timer timer,
            @Nullable StrategyBatcher strategy) {
        this.nanoTime = nanoTime;
        this.equalInputs = equalInputs;
        this.requests = new WaitingRequests(priorities, equalInputs);
        this.batcher = new RequestBatcher(lock, planner, requests, nanoTime, strategy);
        this.idleInstances = new IdleInstances(lock, batcher);
        this.unqueued = new UnqueuedBatch(priorities, equalInputs.joinAll(), batcher, idleInstances);
        this.batches = new BatchSource(lock, batcher, idleInstances, nanoTime);
        this.deadlineTimer = new DeadlineTimer(timer, this::onTimeout);
    }

    @Override
    public BatchSource source() {
        return batches;
    }

    /**
     * Accepts rescheduled requests from now on. Instances stay while requests may be rescheduled. Called before the
     * first instance is registered.
     */
    public void setRescheduledRequests() {
        lock.lock();
        try {
            batcher.setRescheduledRequests(
                    new RescheduledRequests(lock, batcher, idleInstances, equalInputs, remover, deadlineTimer));
        } finally {
            lock.unlock();
        }
    }

    /**
     * Delays all batches until a number of requests wait, once; 0 for no hold. A stop ends the hold. Called before the
     * first request is offered.
     */
    public void hold(int number) {
        lock.lock();
        try {
            batcher.hold(number);
        } finally {
            lock.unlock();
        }
    }

    /** Ends a {@link #hold}: waiting requests may be taken at once. */
    @Override
    public void endHold() {
        lock.lock();
        try {
            if (batcher.endHold()) {
                idleInstances.wakeAll();
                idleInstances.wakeOne(nanoTime.getAsLong());
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public OfferResult offer(ScheduledRequest request, boolean mayRun) {
        QueueEntry entry = new QueueEntry(request, equalInputs.content(request.checked()), remover);
        request.setPosition(entry);
        OfferResult.Outcome outcome;
        InstanceHandle handle;
        Deadline<QueueEntry> next;
        boolean offered = false;
        lock.lock();
        try {
            try {
                outcome = add(entry);
                handle = entry.level == null ? null : batches.serve(mayRun, nanoTime.getAsLong());
                next = deadlineTimer.reserve(requests.timeouts().next());
                offered = true;
            } finally {
                if (!offered) { // the caller completes the request, and no instance takes it
                    requests.remove(entry);
                }
            }
        } finally {
            lock.unlock();
        }
        if (next != null) {
            schedule(next, List.of(entry), handle);
        }
        return handle == null ? outcome : handle;
    }

    @Override
    public @Nullable InstanceHandle offerAll(
            List<ScheduledRequest> offered, boolean mayRun, List<OfferResult> outcomes) {
        InstanceHandle passed = mayRun ? pass(offered) : null;
        return passed == null ? queueAll(offered, mayRun, outcomes) : passed;
    }

    private @Nullable InstanceHandle pass(List<ScheduledRequest> offered) {
        lock.lock();
        try {
            return unqueued.pass(offered);
        } finally {
            lock.unlock();
        }
    }

    private @Nullable InstanceHandle queueAll(
            List<ScheduledRequest> offered, boolean mayRun, List<OfferResult> outcomes) {
        List<QueueEntry> entries = new ArrayList<>(offered.size());
        for (ScheduledRequest request : offered) {
            QueueEntry entry = new QueueEntry(request, content(request), remover);
            request.setPosition(entry);
            entries.add(entry);
        }
        InstanceHandle handle;
        Deadline<QueueEntry> next;
        boolean queued = false;
        lock.lock();
        try {
            try {
                for (QueueEntry entry : entries) {
                    outcomes.add(add(entry));
                }
                handle = batcher.isStopped() ? null : batches.serve(mayRun, nanoTime.getAsLong());
                next = deadlineTimer.reserve(requests.timeouts().next());
                queued = true;
            } finally {
                if (!queued) { // as in offer
                    entries.forEach(requests::remove);
                }
            }
        } finally {
            lock.unlock();
        }
        if (next != null) {
            schedule(next, entries, handle);
        }
        return handle;
    }

    /**
     * Schedules the timeout. If that fails, the caller completes the requests of the entries, and the own thread of the
     * acquired instance executes its batch.
     */
    private void schedule(Deadline<QueueEntry> next, List<QueueEntry> entries, @Nullable InstanceHandle acquired) {
        boolean scheduled = false;
        try {
            deadlineTimer.schedule(next);
            scheduled = true;
        } finally {
            if (!scheduled) {
                retract(entries, acquired);
            }
        }
    }

    private void retract(List<QueueEntry> entries, @Nullable InstanceHandle acquired) {
        lock.lock();
        try {
            entries.forEach(requests::remove); // before the instance takes them
            if (acquired != null) {
                idleInstances.reclaim(acquired);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Reads the content of inputs, unless the request was cancelled while it was collected, and its inputs freed. */
    private byte @Nullable [] content(ScheduledRequest request) {
        if (!equalInputs.readContent()) {
            return equalInputs.content(request.checked());
        }
        if (!request.tryRetain()) {
            return null;
        }
        try {
            return equalInputs.content(request.checked());
        } finally {
            request.release();
        }
    }

    /** Adds a request. Accepts a request that was cancelled meanwhile, with its memory released, without adding it. */
    @GuardedBy("lock")
    private OfferResult.Outcome add(QueueEntry entry) {
        if (batcher.isStopped()) {
            return OfferResult.Outcome.STOPPED;
        }
        if (idleInstances.isStranded()) {
            return OfferResult.Outcome.STRANDED;
        }
        if (idleInstances.hasNoInstances()) {
            return OfferResult.Outcome.NO_INSTANCE;
        }
        if (!entry.request().isWaiting()) {
            return OfferResult.Outcome.ACCEPTED;
        }
        if (!requests.add(entry)) {
            return OfferResult.Outcome.FULL;
        }
        batcher.added();
        return OfferResult.Outcome.ACCEPTED;
    }

    /** Removes and rejects expired requests; called by the timeout. */
    private void onTimeout() {
        deadlineTimer.schedule(expire());
        QueueTimeouts.rejectAll(expired);
    }

    private @Nullable Deadline<QueueEntry> expire() {
        lock.lock();
        try {
            deadlineTimer.onTimeout();
            long now = nanoTime.getAsLong();
            requests.timeouts().expire(now, expired);
            idleInstances.wakeOne(now);
            return deadlineTimer.reserve(requests.timeouts().next());
        } finally {
            lock.unlock();
        }
    }

    /** Removes a completed request, if it is in the queue. */
    private void remove(QueueEntry entry) {
        lock.lock();
        try {
            if (requests.remove(entry) && idleInstances.hasLeader()) {
                idleInstances.wakeOne(nanoTime.getAsLong()); // the rest may have a preferred size
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public int waiting() {
        lock.lock();
        try {
            return requests.length();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void leave() {
        List<ScheduledRequest> stranded;
        lock.lock();
        try {
            idleInstances.leave();
            stranded = idleInstances.removeStranded();
        } finally {
            lock.unlock();
        }
        BatchSource.refuse(stranded);
    }

    @Override
    public void stop() {
        lock.lock();
        try {
            batcher.stop();
            idleInstances.wakeAll();
            idleInstances.wakeOne(nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
        leave();
    }

    @Override
    public List<ScheduledRequest> drain() {
        lock.lock();
        try {
            return requests.drain();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void close() {
        deadlineTimer.close();
    }

    @Override
    public boolean isOpen() {
        lock.lock();
        try {
            return !batcher.isStopped() && !idleInstances.hasNoInstances();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean isStopped() {
        lock.lock();
        try {
            return batcher.isStopped();
        } finally {
            lock.unlock();
        }
    }
}
