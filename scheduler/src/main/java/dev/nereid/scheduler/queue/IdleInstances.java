package dev.nereid.scheduler.queue;

import static java.util.Objects.requireNonNull;

import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The idle instances of a model, and the choice of the one to wake. Guarded by the lock of the queue.
 *
 * <p><b>Who is woken.</b> An instance that finds nothing to do waits in one of two ways. One at most is the
 * <em>leader</em>: requests are there but may still wait for others, and it sleeps until the oldest has waited enough.
 * All others are <em>idle</em> and sleep until they are called. A request calls the leader if it completes a batch;
 * without a leader it calls one idle instance, unless as many are on their way already as there are batches to be had.
 * Whoever takes a batch and leaves something behind does the same. Hence:
 *
 * <p><b>No lost wake-up.</b> Whenever the lock is free and requests wait, one of these holds: every instance is busy
 * and will come by itself; an instance is called and on its way; a leader sleeps, and what waits need not go before it
 * wakes. Time alone changes the third case, and the leader wakes for it. An instance that forms a batch by the model's
 * own rule is busy in this sense: it looks again at its end.
 *
 * <p><b>Lent seats.</b> A thread that offers a request may be given an idle instance to run it on, without any wake-up.
 * That instance is busy in the sense above: the thread looks for what came meanwhile before it gives the seat back.
 *
 * <p>The instance that became idle last is called first: its caches are warm. Under the rate limiter it is that which
 * has had the fewest turns; it may have to wait for its turn after it was called, is busy meanwhile in the sense above,
 * and leaves the requests in the queue until its turn has come.
 */
final class IdleInstances {
    private final QueueLock lock;
    private final BatchTaker taker;
    private @Nullable InstanceHandle leader;

    /** The instance that became idle last; it knows the one before. */
    private @Nullable InstanceHandle idle;

    /** Instances that were called and did not get the lock yet. */
    private int woken;

    /** All instances, whatever they do. */
    private int number;

    /**
     * Begins without any.
     *
     * @param lock the lock of the queue
     * @param taker takes the batches
     */
    IdleInstances(QueueLock lock, BatchTaker taker) {
        this.lock = lock;
        this.taker = taker;
    }

    /**
     * Gives an instance its place.
     *
     * @param lentRun runs the instance on a thread to which the seat is lent
     * @param load tells how much the instance has had of what is limited; must not take any lock
     */
    InstanceHandle add(Runnable lentRun, LongSupplier load) {
        number++;
        return new InstanceHandle(lentRun, load);
    }

    /** Takes away the place of an instance that will not come back. */
    void remove() {
        number--;
    }

    /** Says whether there are no instances, waiting or not. */
    boolean hasNoInstances() {
        return number == 0;
    }

    /** Says whether an instance waits for requests to come together. */
    boolean hasLeader() {
        return leader != null;
    }

    /**
     * Leaves at a seat what there is to do, and calls another instance for what is left.
     *
     * @return whether there is anything; if not, the instance waits for what is there, and needs no other
     */
    boolean serve(InstanceHandle seat, long now) {
        long end =
                seat.taken.isEmpty() ? taker.take(seat, now) : now; // what was taken when something failed goes first
        if (!taker.isPlain() && taker.isStopped()) {
            wakeAll(); // those that found a batch being formed have to look whether anything is left
        }
        boolean found = !seat.taken.isEmpty() || !seat.expired.isEmpty();
        if (found) {
            wakeOne(end);
        }
        return found;
    }

    /** Calls an instance if one more is needed for what waits. */
    void wakeOne(long now) {
        if (taker.isEmpty() || taker.defersWakeup()) {
            return;
        }
        if (leader == null) {
            wakeFirst(taker.batches());
        } else if (taker.mayHaveBatch(now)) {
            wake(leader);
        }
    }

    /**
     * Says whether a thread may run an idle instance: none is on its way to what waits, and this one may run anywhere.
     */
    boolean mayRunDirectly() {
        return leader == null && woken == 0 && idle != null && !idle.placed;
    }

    /** Lends the instance that became idle last; to be asked only if one {@linkplain #mayRunDirectly may}. */
    InstanceHandle acquireIdle() {
        InstanceHandle lent = requireNonNull(idle);
        idle = lent.idleBefore;
        lent.idleBefore = null;
        return lent;
    }

    /** Does as {@link #serve} for a seat that is lent. If that fails, the seat is taken {@linkplain #reclaim back}. */
    boolean serveDirectly(InstanceHandle seat, long now) {
        try {
            return serve(seat, now);
        } catch (RuntimeException | Error e) {
            reclaim(seat);
            throw e;
        }
    }

    /**
     * Takes back the seat of an instance after a failure, unless that was done, and has its own thread called, which
     * goes on with what was taken.
     */
    void reclaim(InstanceHandle seat) {
        if (seat.waiting && !isIdle(seat)) {
            addIdle(seat);
        }
        wakeIfWaiting(seat);
    }

    /** Takes back the seat of an instance that was lent; the instance is idle again. */
    void addIdle(InstanceHandle seat) {
        seat.idleBefore = idle;
        idle = seat;
    }

    /** Calls the instance that goes first, if any is idle and fewer are on their way than there are batches. */
    void wakeFirst(long batches) {
        if (idle != null && woken < batches) {
            wake(first(idle));
        }
    }

    /** Returns the first of those that have had the least. */
    private static InstanceHandle first(InstanceHandle idle) {
        InstanceHandle first = idle;
        for (InstanceHandle seat = idle.idleBefore; seat != null; seat = seat.idleBefore) {
            if (seat.load.getAsLong() < first.load.getAsLong()) {
                first = seat;
            }
        }
        return first;
    }

    /** Calls all that wait. */
    void wakeAll() {
        if (leader != null) {
            wake(leader);
        }
        while (idle != null) {
            wake(idle);
        }
    }

    /** Calls an instance if it waits, and says whether it does. */
    boolean wakeIfWaiting(InstanceHandle seat) {
        boolean waits = seat == leader || isIdle(seat);
        if (waits) {
            wake(seat);
        }
        return waits;
    }

    private boolean isIdle(InstanceHandle seat) {
        InstanceHandle found = idle;
        while (found != null && found != seat) {
            found = found.idleBefore;
        }
        return found != null;
    }

    private void wake(InstanceHandle seat) {
        if (seat == leader) {
            leader = null;
        } else if (seat == idle) {
            idle = seat.idleBefore;
        } else {
            InstanceHandle after = requireNonNull(idle);
            while (after.idleBefore != seat) {
                after = requireNonNull(after.idleBefore);
            }
            after.idleBefore = seat.idleBefore;
        }
        seat.idleBefore = null;
        seat.waiting = false;
        woken++;
        lock.wake(seat.thread);
    }

    /**
     * Waits until there may be something to do: as the leader for a time if there is none, or else until it is called.
     */
    void await(InstanceHandle seat, long now) {
        if (leader == null && taker.needsLeader()) {
            lead(seat, taker.waitNanos(now));
        } else {
            idle(seat);
        }
    }

    private void idle(InstanceHandle seat) {
        beginToWait(seat);
        addIdle(seat);
        boolean interrupted = false;
        while (seat.waiting) {
            interrupted |= lock.sleep(seat);
        }
        woken--;
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Sleeps once, whatever ends that: the caller looks at queue and clock again. Only a backend has this thread at
     * hand, and no execution runs: there is nothing to interrupt.
     */
    private void lead(InstanceHandle seat, long nanos) {
        beginToWait(seat);
        leader = seat;
        if (nanos > 0) {
            lock.sleep(seat, nanos);
        }
        if (seat.waiting) {
            seat.waiting = false;
            leader = null;
        } else {
            woken--;
        }
    }

    private static void beginToWait(InstanceHandle seat) {
        seat.waiting = true;
        seat.thread = Thread.currentThread();
    }
}
