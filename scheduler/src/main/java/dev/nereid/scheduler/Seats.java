package dev.nereid.scheduler;

import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.locks.Lock;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The instances of a model that wait for requests, and how each of them is woken. Guarded by the lock of the queue.
 *
 * <p>One at most is the leader, which sleeps for a time; all others are idle and sleep until they are called. The one that
 * became idle last is called first, of those that have had least.
 */
final class Seats {
    private final Lock lock;
    private final Deque<Seat> idle = new ArrayDeque<>();
    private @Nullable Seat leader;

    /** Instances that were called and did not get the lock yet. */
    private int called;

    /** All instances, whatever they do. */
    private int number;

    /**
     * Begins without any.
     *
     * @param lock the lock of the queue
     */
    Seats(Lock lock) {
        this.lock = lock;
    }

    /**
     * Gives an instance its place.
     *
     * @param lentRun runs the instance on a thread to which the seat is lent
     * @param load tells how much the instance has had of what is limited; must not take any lock
     */
    Seat add(Runnable lentRun, LongSupplier load) {
        number++;
        return new Seat(lock.newCondition(), lentRun, load);
    }

    /** Takes away the place of an instance that will not come back. */
    void remove() {
        number--;
    }

    /** Says whether there are no instances, waiting or not. */
    boolean areGone() {
        return number == 0;
    }

    /** Says whether an instance waits for requests to come together. */
    boolean hasLeader() {
        return leader != null;
    }

    /** Says whether a thread may run an idle instance: none is on its way to what waits, and this one may run anywhere. */
    boolean mayLend() {
        return leader == null && called == 0 && !idle.isEmpty() && !idle.element().placed;
    }

    /** Lends the instance that became idle last. */
    Seat lend() {
        return idle.pop();
    }

    /** Takes back the seat of an instance that was lent; the instance is idle again. */
    void takeBack(Seat seat) {
        idle.push(seat);
    }

    /** Calls the instance that goes first, if any is idle and fewer are on their way than there are batches. */
    void callFirst(long batches) {
        if (!idle.isEmpty() && called < batches) {
            call(first());
        }
    }

    private Seat first() {
        Seat first = idle.getFirst();
        for (Seat seat : idle) {
            if (seat.load.getAsLong() < first.load.getAsLong()) {
                first = seat;
            }
        }
        return first;
    }

    /** Calls the leader, if there is one. */
    void callLeader() {
        if (leader != null) {
            call(leader);
        }
    }

    /** Calls all that wait. */
    void callAll() {
        callLeader();
        while (!idle.isEmpty()) {
            call(idle.peek());
        }
    }

    /** Calls an instance if it waits, and says whether it does. */
    boolean callIfWaiting(Seat seat) {
        boolean waits = seat == leader || idle.contains(seat);
        if (waits) {
            call(seat);
        }
        return waits;
    }

    private void call(Seat seat) {
        if (seat == leader) {
            leader = null;
        } else {
            idle.remove(seat);
        }
        seat.waiting = false;
        called++;
        seat.called.signal();
    }

    /** Waits as an idle instance until it is called. */
    void await(Seat seat) {
        seat.waiting = true;
        idle.push(seat);
        while (seat.waiting) {
            seat.called.awaitUninterruptibly();
        }
        called--;
    }

    /** Waits as the leader until it is called, or for a time; there must be no other. */
    void lead(Seat seat, long nanos) {
        seat.waiting = true;
        leader = seat;
        sleep(seat, nanos);
        if (seat.waiting) {
            seat.waiting = false;
            leader = null;
        } else {
            called--;
        }
    }

    private static void sleep(Seat seat, long nanos) {
        long left = nanos;
        try {
            while (seat.waiting && left > 0) {
                left = seat.called.awaitNanos(left);
            }
        } catch (InterruptedException e) {
            // Only a backend has this thread at hand, and no execution runs: there is nothing to interrupt. The caller
            // looks at queue and clock again in any case.
        }
    }
}
