package dev.nereid.scheduler;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * Where the instances of one model take their batches, and wait for them. Guarded by the lock of the queue, which each
 * method takes; no backend, observer or other foreign code is called under it. A {@link Seat} is used by the thread
 * that runs its instance.
 *
 * <p><b>Pull.</b> Each instance takes its next batch itself when it is free; nobody stands between it and those who
 * offer requests. Which instance is woken for what, {@link Seats} says.
 */
final class BatchSource {
    private final QueueLock lock;
    private final LongSupplier nanoTime;

    @GuardedBy("lock")
    private final WaitingRequests requests;

    @GuardedBy("lock")
    private final BatchTaker taker;

    @GuardedBy("lock")
    private final Seats seats;

    /**
     * Opens the side of a queue that instances see.
     *
     * @param lock the lock of the queue
     * @param requests what waits
     * @param taker takes the batches
     * @param seats the instances
     * @param nanoTime the clock
     */
    BatchSource(QueueLock lock, WaitingRequests requests, BatchTaker taker, Seats seats, LongSupplier nanoTime) {
        this.lock = lock;
        this.requests = requests;
        this.taker = taker;
        this.seats = seats;
        this.nanoTime = nanoTime;
    }

    /**
     * Gives an instance its place.
     *
     * @param lentRun runs the instance on a thread to which the seat is lent, and then calls {@link #giveBack}
     * @param load tells how much the instance has had of what is limited; must not take any lock
     */
    Seat seat(Runnable lentRun, LongSupplier load) {
        lock.lock();
        try {
            return seats.add(lentRun, load);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits for a batch or for requests whose time is over, and leaves them at the seat.
     *
     * @return {@code false} if there is nothing left to do, ever
     */
    boolean take(Seat seat) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            while (seat.retired || !seats.serve(seat, now)) {
                if (seat.retired || !taker.isToGoOn()) {
                    return false;
                }
                seats.await(seat, now);
                now = nanoTime.getAsLong();
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Does as {@link #take}, but returns {@code false} instead of waiting. */
    boolean poll(Seat seat) {
        lock.lock();
        try {
            return !seat.retired && seats.serve(seat, nanoTime.getAsLong());
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
    boolean awaitWork(Seat seat) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            while (seat.retired || !taker.hasBatch(now)) {
                if (seat.retired || !taker.isToGoOn()) {
                    return false;
                }
                seats.await(seat, now);
                now = nanoTime.getAsLong();
            }
            seats.callFirst(taker.batches() - 1); // what this one leaves behind need not wait for its turn
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Says whether there is a batch. */
    boolean hasWork() {
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
    boolean giveBack(Seat seat, boolean mayRun) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            if (mayRun && !seat.retired && !requests.hasHeavy() && seats.serveLent(seat, now)) {
                return true;
            }
            seats.takeBack(seat);
            if (taker.isStopped() || seat.retired) {
                seats.callIfWaiting(seat);
            } else {
                seats.callOne(now);
            }
            return false;
        } catch (RuntimeException | Error e) { // such as no memory
            seats.recall(seat);
            throw e;
        } finally {
            lock.unlock();
        }
    }

    /** Has the instance of a seat take no more; its thread has to {@link #leave} then. */
    void retire(Seat seat) {
        lock.lock();
        try {
            seat.retired = true;
            if (!seats.callIfWaiting(seat)) { // it may have been called for what waits, and wait for its turn
                seats.callOne(nanoTime.getAsLong());
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
    List<ScheduledRequest> leave() {
        List<ScheduledRequest> stranded = new ArrayList<>();
        lock.lock();
        try {
            seats.remove();
            if (seats.areGone()) {
                requests.drainTo(stranded);
            } else { // the call that woke this one may have been meant for what waits
                seats.callOne(nanoTime.getAsLong());
            }
        } finally {
            lock.unlock();
        }
        return stranded;
    }
}
