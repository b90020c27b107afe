package dev.nereid.scheduler.queue;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.function.LongSupplier;

/**
 * Passes batches to the instances of one model. Guarded by the lock of the queue, which each method takes; no backend,
 * observer or other foreign code is called under it. An {@link InstanceHandle} is used by the thread that runs its
 * instance.
 *
 * <p><b>Pull.</b> Each instance takes its next batch itself when it is free; no dispatcher thread stands between
 * instances and threads that offer requests. {@link IdleInstances} decides which instance to wake.
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
     * Creates the instances' view of a queue.
     *
     * @param lock the lock of the queue
     * @param requests the waiting requests
     * @param taker takes the batches
     * @param idleInstances the instances
     * @param nanoTime the clock
     */
    BatchSource(
            QueueLock lock,
            WaitingRequests requests,
            BatchTaker taker,
            IdleInstances idleInstances,
            LongSupplier nanoTime) {
        this.lock = lock;
        this.requests = requests;
        this.taker = taker;
        this.idleInstances = idleInstances;
        this.nanoTime = nanoTime;
    }

    /**
     * Registers an instance.
     *
     * @param directRun runs the instance on the thread that acquired it, and then calls {@link #finishDirectRun}
     * @param load the load of the instance by the rate limiter; must not take any lock
     */
    public InstanceHandle register(Runnable directRun, LongSupplier load) {
        lock.lock();
        try {
            return idleInstances.add(directRun, load);
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits for a batch or expired requests, and adds them to the handle.
     *
     * @return {@code false} if the instance has no more work, ever
     */
    public boolean take(InstanceHandle handle) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            while (handle.retired || !idleInstances.serve(handle, now)) {
                if (handle.retired || !taker.mayHaveWork()) {
                    return false;
                }
                idleInstances.await(handle, now);
                now = nanoTime.getAsLong();
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Does as {@link #take}, but returns {@code false} instead of waiting. */
    public boolean poll(InstanceHandle handle) {
        lock.lock();
        try {
            return !handle.retired && idleInstances.serve(handle, nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    /**
     * Waits until there is a batch, and leaves it in the queue. The batch may have changed or gone when it is taken.
     *
     * @return {@code false} if the instance has no more work, ever
     */
    public boolean awaitWork(InstanceHandle handle) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            while (handle.retired || !taker.hasBatch(now)) {
                if (handle.retired || !taker.mayHaveWork()) {
                    return false;
                }
                idleInstances.await(handle, now);
                now = nanoTime.getAsLong();
            }
            // The other batches need not wait for the permit of this instance.
            idleInstances.wakeFirst(taker.batches() - 1);
            return true;
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether there is a batch. */
    public boolean hasWork() {
        lock.lock();
        try {
            return taker.hasBatch(nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    /**
     * Takes another batch for direct execution, as {@link #poll} does, or makes the instance idle again.
     *
     * @param mayRun whether the caller may run another batch
     * @return whether there is another batch; if not, or if this throws, the caller must not run the instance any more
     */
    public boolean finishDirectRun(InstanceHandle handle, boolean mayRun) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            if (mayRun && !handle.retired && !requests.hasHeavy() && idleInstances.serveDirectly(handle, now)) {
                return true;
            }
            idleInstances.addIdle(handle);
            if (taker.isStopped() || handle.retired) {
                idleInstances.wakeIfWaiting(handle);
            } else {
                idleInstances.wakeOne(now);
            }
            return false;
        } catch (RuntimeException | Error e) { // such as no memory
            idleInstances.reclaim(handle);
            throw e;
        } finally {
            lock.unlock();
        }
    }

    /** Stops an instance from taking batches; its thread has to {@link #deregister} then. */
    public void retire(InstanceHandle handle) {
        lock.lock();
        try {
            handle.retired = true;
            if (!idleInstances.wakeIfWaiting(handle)) { // it may have been woken for a batch, and wait for its permit
                idleInstances.wakeOne(nanoTime.getAsLong());
            }
        } finally {
            lock.unlock();
        }
    }

    /**
     * Deregisters an instance.
     *
     * @return the requests that no instance is left to execute, to be completed by the caller
     */
    public List<ScheduledRequest> deregister() {
        List<ScheduledRequest> stranded = new ArrayList<>();
        lock.lock();
        try {
            idleInstances.remove();
            if (idleInstances.hasNoInstances()) {
                requests.drainTo(stranded);
            } else { // this instance may have been woken for a waiting request
                idleInstances.wakeOne(nanoTime.getAsLong());
            }
        } finally {
            lock.unlock();
        }
        return stranded;
    }
}
