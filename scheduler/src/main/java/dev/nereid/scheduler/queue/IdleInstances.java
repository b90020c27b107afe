package dev.nereid.scheduler.queue;

import static java.util.Objects.requireNonNull;

import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The idle instances of a model, and the choice of the one to wake. Guarded by the lock of the queue.
 *
 * <p><b>Wake-ups.</b> An instance without a batch waits in one of two ways. One instance at most is the
 * <em>leader</em>: requests wait but may still wait for others, and the leader sleeps until the oldest has waited long
 * enough. All other waiting instances are <em>idle</em> and sleep until they are woken. An offered request wakes the
 * leader if it completes a batch; without a leader it wakes one idle instance, unless as many instances are woken
 * already as there are batches. An instance that takes a batch and leaves requests behind does the same. Hence:
 *
 * <p><b>No lost wake-up.</b> Whenever the lock is free and requests wait, one of these holds: every instance is busy
 * and will return by itself; an instance is woken and about to take the lock; a leader sleeps, and the waiting requests
 * need not run before it wakes. Time alone changes the third case, and the leader wakes for it. An instance that forms
 * a batch by the batching strategy is busy in this sense: it checks the queue again afterwards.
 *
 * <p><b>Direct execution.</b> A thread that offers a request may acquire an idle instance to run it on, without a
 * wake-up. That instance is busy in the sense above: the thread checks the queue again before it releases the instance.
 *
 * <p>The instance that became idle last is woken first: its caches are warm. Under the rate limiter it is the instance
 * with the lowest load. A woken instance may have to wait for its permit; meanwhile it is busy in the sense above, and
 * leaves the requests in the queue until the permit is granted.
 */
final class IdleInstances {
    private final QueueLock lock;
    private final BatchTaker taker;
    private @Nullable InstanceHandle leader;

    /** The instance that became idle last; head of a linked list. */
    private @Nullable InstanceHandle idle;

    /** The number of instances that were woken and did not take the lock yet. */
    private int woken;

    /** The number of registered instances. */
    private int number;

    /**
     * Creates an empty set.
     *
     * @param lock the lock of the queue
     * @param taker takes the batches
     */
    IdleInstances(QueueLock lock, BatchTaker taker) {
        this.lock = lock;
        this.taker = taker;
    }

    /**
     * Registers an instance.
     *
     * @param directRun runs the instance on the thread that acquired it for direct execution
     * @param load the load of the instance by the rate limiter; must not take any lock
     */
    InstanceHandle add(Runnable directRun, LongSupplier load) {
        number++;
        return new InstanceHandle(directRun, load);
    }

    /** Deregisters an instance. */
    void remove() {
        number--;
    }

    /** Returns whether no instance is registered. */
    boolean hasNoInstances() {
        return number == 0;
    }

    /** Returns whether an instance waits for a batch to fill. */
    boolean hasLeader() {
        return leader != null;
    }

    /**
     * Takes a batch and expired requests for an instance. Wakes another instance for what is left.
     *
     * @return whether any were taken; if not, the instance itself waits for the rest of the queue
     */
    boolean serve(InstanceHandle handle, long now) {
        long end = handle.taken.isEmpty() ? taker.take(handle, now) : now; // requests left from a failure go first
        if (!taker.isPlain() && taker.isStopped()) {
            wakeAll(); // instances that waited for a batch being formed check whether requests are left
        }
        boolean found = !handle.taken.isEmpty() || !handle.expired.isEmpty();
        if (found) {
            wakeOne(end);
        }
        return found;
    }

    /** Wakes an instance if the waiting requests need one more. */
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
     * Returns whether a thread may run an idle instance. It may if no instance is woken, and the idle one may run on
     * any thread.
     */
    boolean mayRunDirectly() {
        return leader == null && woken == 0 && idle != null && !idle.placed;
    }

    /**
     * Removes and returns the instance that became idle last. Called only if one {@linkplain #mayRunDirectly may run}.
     */
    InstanceHandle acquireIdle() {
        InstanceHandle acquired = requireNonNull(idle);
        idle = acquired.idleBefore;
        acquired.idleBefore = null;
        return acquired;
    }

    /** Does as {@link #serve} for direct execution. If that throws, the instance is {@linkplain #reclaim reclaimed}. */
    boolean serveDirectly(InstanceHandle handle, long now) {
        try {
            return serve(handle, now);
        } catch (RuntimeException | Error e) {
            reclaim(handle);
            throw e;
        }
    }

    /**
     * Makes an instance idle again after a failed direct execution, if it is not. Wakes its own thread, which continues
     * with the requests that were taken.
     */
    void reclaim(InstanceHandle handle) {
        if (handle.waiting && !isIdle(handle)) {
            addIdle(handle);
        }
        wakeIfWaiting(handle);
    }

    /** Adds an instance to the idle ones. */
    void addIdle(InstanceHandle handle) {
        handle.idleBefore = idle;
        idle = handle;
    }

    /** Wakes the first idle instance. Does so if one is idle and fewer are woken than there are batches. */
    void wakeFirst(long batches) {
        if (idle != null && woken < batches) {
            wake(first(idle));
        }
    }

    /** Returns the idle instance with the lowest load. Among equals it is the last one to become idle. */
    private static InstanceHandle first(InstanceHandle idle) {
        InstanceHandle first = idle;
        for (InstanceHandle handle = idle.idleBefore; handle != null; handle = handle.idleBefore) {
            if (handle.load.getAsLong() < first.load.getAsLong()) {
                first = handle;
            }
        }
        return first;
    }

    /** Wakes all waiting instances. */
    void wakeAll() {
        if (leader != null) {
            wake(leader);
        }
        while (idle != null) {
            wake(idle);
        }
    }

    /** Wakes an instance if it waits; returns whether it did. */
    boolean wakeIfWaiting(InstanceHandle handle) {
        boolean waits = handle == leader || isIdle(handle);
        if (waits) {
            wake(handle);
        }
        return waits;
    }

    private boolean isIdle(InstanceHandle handle) {
        InstanceHandle found = idle;
        while (found != null && found != handle) {
            found = found.idleBefore;
        }
        return found != null;
    }

    private void wake(InstanceHandle handle) {
        if (handle == leader) {
            leader = null;
        } else if (handle == idle) {
            idle = handle.idleBefore;
        } else {
            InstanceHandle after = requireNonNull(idle);
            while (after.idleBefore != handle) {
                after = requireNonNull(after.idleBefore);
            }
            after.idleBefore = handle.idleBefore;
        }
        handle.idleBefore = null;
        handle.waiting = false;
        woken++;
        lock.wake(handle.thread);
    }

    /**
     * Waits for work. The instance waits as the leader for a limited time if there is none, or else until it is woken.
     */
    void await(InstanceHandle handle, long now) {
        if (leader == null && taker.needsLeader()) {
            lead(handle, taker.waitNanos(now));
        } else {
            idle(handle);
        }
    }

    private void idle(InstanceHandle handle) {
        beginToWait(handle);
        addIdle(handle);
        boolean interrupted = false;
        while (handle.waiting) {
            interrupted |= lock.sleep(handle);
        }
        woken--;
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /**
     * Sleeps once, whatever ends that: the caller checks queue and clock again. An interrupt is ignored: only a backend
     * has this thread at hand, and no execution runs.
     */
    private void lead(InstanceHandle handle, long nanos) {
        beginToWait(handle);
        leader = handle;
        if (nanos > 0) {
            lock.sleep(handle, nanos);
        }
        if (handle.waiting) {
            handle.waiting = false;
            leader = null;
        } else {
            woken--;
        }
    }

    private static void beginToWait(InstanceHandle handle) {
        handle.waiting = true;
        handle.thread = Thread.currentThread();
    }
}
