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
 * The waiting requests of one model. Guarded by its lock, the one lock of the model's scheduler; no backend, observer
 * or other foreign code is called under it.
 *
 * <p><b>Pull.</b> Callers of {@link #offer} add requests; each instance takes its next batch itself from
 * {@link #batches} when it is free. Nobody stands between them, so a request costs one wake-up at most, and none while
 * all instances are busy: see {@link IdleInstances}.
 *
 * <p><b>Time.</b> One alarm is set to the earliest moment at which the time of a request is over, or earlier: see
 * {@link DeadlineTimer}. Whoever takes a batch handles what is due before, rung or not. A request is taken out by any
 * of them under the lock, and answered outside.
 */
public final class RequestQueue {
    private final LongSupplier nanoTime;
    private final EqualInputs equalInputs;
    private final DeadlineTimer deadlineTimer;
    private final Consumer<QueueEntry> remover = this::remove;
    private final BatchSource batches;
    private final QueueLock lock = new QueueLock();

    @GuardedBy("lock")
    private final WaitingRequests requests;

    @GuardedBy("lock")
    private final BatchTaker taker;

    @GuardedBy("lock")
    private final IdleInstances idleInstances;

    /**
     * Makes an empty queue.
     *
     * @param planner decides about batches
     * @param priorities the priority levels of the model
     * @param equalInputs decides which requests may share a batch
     * @param nanoTime the clock
     * @param timer an alarm of it is held until the queue is closed
     * @param strategy forms batches by the model's own rule; {@code null} if there is none
     */
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
        this.taker = new BatchTaker(lock, planner, requests, nanoTime, strategy);
        this.idleInstances = new IdleInstances(lock, taker);
        this.batches = new BatchSource(lock, requests, taker, idleInstances, nanoTime);
        this.deadlineTimer = new DeadlineTimer(timer, this::onTimeout);
    }

    /** Returns where instances take their batches; the same at every call. */
    public BatchSource batches() {
        return batches;
    }

    /**
     * Lets no instance take a batch until so many requests wait, once; a stop ends that. To be called before the first
     * request is offered.
     *
     * @param number the number of requests; 0 for none
     */
    public void hold(int number) {
        lock.lock();
        try {
            taker.hold(number);
        } finally {
            lock.unlock();
        }
    }

    /** Ends what {@link #hold} began: what waits may be taken at once. */
    public void endHold() {
        lock.lock();
        try {
            if (taker.endHold()) {
                idleInstances.wakeAll();
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Adds a request, unless it could not be executed any more. If anything is thrown, it is not in the queue.
     *
     * @param mayRun whether the caller runs an instance if one is idle and there is a batch for it
     * @return the seat of that instance with its batch, to be run by the caller at once; or else what became of the
     *     request
     */
    public OfferResult offer(ScheduledRequest request, boolean mayRun) {
        QueueEntry entry = new QueueEntry(request, equalInputs.content(request.checked()), remover);
        request.waitsAt(entry);
        OfferResult admission;
        Deadline next;
        lock.lock();
        try {
            admission = admit(entry, mayRun);
            next = deadlineTimer.reserve(requests.nextDeadline());
        } catch (RuntimeException | Error e) { // such as no memory: the caller answers it, and no instance takes it
            requests.remove(entry);
            throw e;
        } finally {
            lock.unlock();
        }
        deadlineTimer.schedule(next);
        return admission;
    }

    @GuardedBy("lock")
    private OfferResult admit(QueueEntry entry, boolean mayRun) {
        if (taker.isStopped()) {
            return OfferResult.Outcome.STOPPED;
        }
        if (idleInstances.hasNoInstances()) {
            return OfferResult.Outcome.NO_INSTANCE;
        }
        if (!entry.request().isWaiting()) { // withdrawn meanwhile, its memory given back
            return OfferResult.Outcome.ACCEPTED;
        }
        if (!requests.add(entry)) {
            return OfferResult.Outcome.FULL;
        }
        taker.added();
        long now = nanoTime.getAsLong(); // later than the request came if a cache was asked first
        if (mayRun && taker.isPlain() && idleInstances.mayRunDirectly() && !requests.hasHeavy()) {
            InstanceHandle seat = idleInstances.acquireIdle();
            if (idleInstances.serveDirectly(seat, now)) {
                return seat;
            }
            idleInstances.addIdle(seat);
        }
        idleInstances.wakeOne(now);
        return OfferResult.Outcome.ACCEPTED;
    }

    /** Handles what is due; called by the alarm. */
    private void onTimeout() {
        List<Deadline> overdue = new ArrayList<>();
        Deadline next;
        lock.lock();
        try {
            deadlineTimer.onTimeout();
            long now = nanoTime.getAsLong();
            requests.expire(now, overdue);
            idleInstances.wakeOne(now);
            next = deadlineTimer.reserve(requests.nextDeadline());
        } finally {
            lock.unlock();
        }
        deadlineTimer.schedule(next);
        overdue.forEach(Deadline::rejectRequest);
    }

    /** Takes a request out that was answered, if it waits here. */
    private void remove(QueueEntry entry) {
        lock.lock();
        try {
            if (requests.remove(entry) && idleInstances.hasLeader()) {
                idleInstances.wakeOne(nanoTime.getAsLong()); // what is left may be a preferred size
            }
        } finally {
            lock.unlock();
        }
    }

    /** Returns the number of requests that wait. */
    public int waiting() {
        lock.lock();
        try {
            return requests.length();
        } finally {
            lock.unlock();
        }
    }

    /** Takes no more requests; what waits goes at once. */
    public void stop() {
        lock.lock();
        try {
            taker.stop();
            idleInstances.wakeAll();
        } finally {
            lock.unlock();
        }
    }

    /** Takes all requests out that wait, to be answered by the caller. */
    public List<ScheduledRequest> drain() {
        List<ScheduledRequest> drained = new ArrayList<>();
        lock.lock();
        try {
            requests.drainTo(drained);
        } finally {
            lock.unlock();
        }
        return drained;
    }

    /** Gives the alarm back; to be called once no request waits, nor ever will. */
    public void close() {
        deadlineTimer.close();
    }

    /** Says whether requests are taken. */
    public boolean isOpen() {
        lock.lock();
        try {
            return !taker.isStopped() && !idleInstances.hasNoInstances();
        } finally {
            lock.unlock();
        }
    }

    /** Says whether no more requests are taken since the model ends. */
    public boolean isStopped() {
        lock.lock();
        try {
            return taker.isStopped();
        } finally {
            lock.unlock();
        }
    }
}
