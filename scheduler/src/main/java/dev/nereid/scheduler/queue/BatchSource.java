package dev.nereid.scheduler.queue;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * Gives batches to the instances of one model. Guarded by the lock of the queue, which each method takes; no backend,
 * observer or other foreign code is called under it. A {@link InstanceHandle} is used by the thread that runs its
 * instance.
 *
 * <p><b>Pull.</b> Each instance takes its next batch itself when it is free; nobody stands between it and those who
 * offer requests. Which instance is woken for what, {@link IdleInstances} says.
 */
public final class BatchSource {
    private final QueueLock lock;
    private final LongSupplier nanoTime;

    @GuardedBy("lock")
    private final WaitingRequests requests;

    @GuardedBy("lock")
    private final BatchTaker taker;

    @GuardedBy("lock")
    private final IdleInstances idleInstances;

    /**
     * Opens the side of a queue that instances see.
     *
     * @param lock the lock of the queue
     * @param requests what waits
     * @param taker takes the batches
     * @param seats the instances
     * @param nanoTime the clock
     */
    BatchSource(
            QueueLock lock, WaitingRequests requests, BatchTaker taker, IdleInstances seats, LongSupplier nanoTime) {
        this.lock = lock;
        this.requests = requests;
        this.taker = taker;
        this.idleInstances = seats;
        this.nanoTime = nanoTime;
    }

    /**
     * Gives an instance its place.
     *
     * @param lentRun runs the instance on a thread to which the seat is lent, and then calls {@link #finishDirectRun}
     * @param load tells how much the instance has had of what is limited; must not take any lock
     */
    public InstanceHandle register(Runnable lentRun, LongSupplier load) {
        lock.lock();
        try {
            return idleInstances.add(lentRun, load);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits for a batch or for requests whose time is over, and leaves them at the seat.
     *
     * @return {@code false} if there is nothing left to do, ever
     */
    public boolean take(InstanceHandle seat) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            while (seat.retired || !idleInstances.serve(seat, now)) {
                if (seat.retired || !taker.mayHaveWork()) {
                    return false;
                }
                idleInstances.await(seat, now);
                now = nanoTime.getAsLong();
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Does as {@link #take}, but returns {@code false} instead of waiting. */
    public boolean poll(InstanceHandle seat) {
        lock.lock();
        try {
            return !seat.retired && idleInstances.serve(seat, nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits until there is a batch, and leaves it in the queue: by the time it is to be executed it may be another one,
     * or none.
     *
     * @return {@code false} if there is nothing left to do, ever
     */
    public boolean awaitWork(InstanceHandle seat) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            while (seat.retired || !taker.hasBatch(now)) {
                if (seat.retired || !taker.mayHaveWork()) {
                    return false;
                }
                idleInstances.await(seat, now);
                now = nanoTime.getAsLong();
            }
            idleInstances.wakeFirst(taker.batches() - 1); // what this one leaves behind need not wait for its turn
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Says whether there is a batch. */
    public boolean hasWork() {
        lock.lock();
        try {
            return taker.hasBatch(nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    /**
     * Takes another batch for a seat that was lent, as {@link #poll} does, or gives the seat back.
     *
     * @param mayRun whether the caller would run another batch
     * @return whether there is another batch; if not, also if something is thrown, the caller must not run the instance
     *     any more
     */
    public boolean finishDirectRun(InstanceHandle seat, boolean mayRun) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            if (mayRun && !seat.retired && !requests.hasHeavy() && idleInstances.serveDirectly(seat, now)) {
                return true;
            }
            idleInstances.addIdle(seat);
            if (taker.isStopped() || seat.retired) {
                idleInstances.wakeIfWaiting(seat);
            } else {
                idleInstances.wakeOne(now);
            }
            return false;
        } catch (RuntimeException | Error e) { // such as no memory
            idleInstances.reclaim(seat);
            throw e;
        } finally {
            lock.unlock();
        }
    }

    /** Has the instance of a seat take no more; its thread has to {@link #deregister} then. */
    public void retire(InstanceHandle seat) {
        lock.lock();
        try {
            seat.retired = true;
            if (!idleInstances.wakeIfWaiting(seat)) { // it may have been called for what waits, and wait for its turn
                idleInstances.wakeOne(nanoTime.getAsLong());
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Takes a seat away whose instance will not come back.
     *
     * @return the requests that nobody is left to execute, to be answered by the caller
     */
    public List<ScheduledRequest> deregister() {
        List<ScheduledRequest> stranded = new ArrayList<>();
        lock.lock();
        try {
            idleInstances.remove();
            if (idleInstances.hasNoInstances()) {
                requests.drainTo(stranded);
            } else { // the call that woke this one may have been meant for what waits
                idleInstances.wakeOne(nanoTime.getAsLong());
            }
        } finally {
            lock.unlock();
        }
        return stranded;
    }
}
