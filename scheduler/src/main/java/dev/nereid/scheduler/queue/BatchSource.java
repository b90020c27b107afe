package dev.nereid.scheduler.queue;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.statistics.FailureReason;
import dev.nereid.scheduler.request.IndependentCalls;
import dev.nereid.scheduler.request.ScheduledRequest;
import dev.nereid.scheduler.request.SchedulerErrors;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * Passes batches to instances: to all instances of a model, or to one instance with the sequences in its slots. A
 * {@link Batcher} forms them. Guarded by the lock of the queue, which each method takes unless it says otherwise; no
 * backend, observer or other foreign code is called under it. An {@link InstanceHandle} is used by the thread that runs
 * its instance.
 *
 * <p><b>Pull.</b> Each instance takes its next batch itself when it is free; no dispatcher thread stands between
 * instances and threads that offer requests. {@link IdleInstances} decides which instance to wake.
 */
public final class BatchSource implements WorkSource {
    /** The lock of the queue, which the queue itself may hold already: it guards the batcher and the idle instances. */
    private final QueueLock lock;

    private final LongSupplier nanoTime;
    private final Batcher batcher;
    private final IdleInstances idleInstances;

    /** Creates a source without instances. Others may share the lock, but not the batcher. */
    public BatchSource(QueueLock lock, Batcher batcher, LongSupplier nanoTime) {
        this(lock, batcher, new IdleInstances(lock, batcher), nanoTime);
    }

    BatchSource(QueueLock lock, Batcher batcher, IdleInstances idleInstances, LongSupplier nanoTime) {
        this.lock = lock;
        this.batcher = batcher;
        this.idleInstances = idleInstances;
        this.nanoTime = nanoTime;
    }

    // What batchers and queues call, under the lock.

    /**
     * Takes a batch for the calling thread if it may run an idle instance, or wakes an instance for the waiting requests.
     * The caller holds the lock.
     *
     * @param mayRun whether the caller runs an idle instance if there is a batch for it
     * @return the handle of the idle instance with its batch, to be run by the caller; {@code null} if it runs none
     */
    public @Nullable InstanceHandle serve(boolean mayRun, long now) {
        if (mayRun && batcher.isPlain() && idleInstances.mayRunDirectly() && !batcher.needsInstanceThread()) {
            InstanceHandle handle = idleInstances.acquireIdle();
            if (idleInstances.serveDirectly(handle, now)) {
                return handle;
            }
            idleInstances.addIdle(handle);
        }
        idleInstances.wakeOne(now);
        return null;
    }

    /** Wakes an instance if the waiting requests need one more. The caller holds the lock. */
    public void wake(long now) {
        idleInstances.wakeOne(now);
    }

    /** Wakes all instances: they have to be {@linkplain Batcher#takeEnded notified}. The caller holds the lock. */
    public void wakeForEnded() {
        idleInstances.wakeEvery();
    }

    /** Wakes all instances that have a thread: they may have no more work, ever. The caller holds the lock. */
    public void wakeAll() {
        idleInstances.wakeAll();
    }

    // What instances call.

    @Override
    public InstanceHandle register(Runnable directRun, LongSupplier load) {
        lock.lock();
        try {
            InstanceHandle handle = new InstanceHandle(directRun, load);
            batcher.registered(handle);
            idleInstances.add();
            return handle;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void addUnstarted(InstanceHandle handle, Runnable starter) {
        lock.lock();
        try {
            handle.starter = starter;
            idleInstances.addUnstarted(handle);
            if (!handle.retired) {
                open(handle);
            }
            idleInstances.wakeOne(nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    @Override
    public List<ScheduledRequest> startFailed(InstanceHandle handle) {
        lock.lock();
        try {
            return idleInstances.startFailed(handle, nanoTime.getAsLong()) ? batcher.removeWaiting() : List.of();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void removeUnstarted(InstanceHandle handle) {
        lock.lock();
        try {
            idleInstances.removeUnstarted(handle);
        } finally {
            lock.unlock();
        }
    }

    /** Opens an instance for batches, when its thread first looks for one. */
    @GuardedBy("lock")
    private void open(InstanceHandle handle) {
        if (!handle.opened) {
            handle.opened = true;
            batcher.opened();
        }
    }

    @Override
    public boolean take(InstanceHandle handle) {
        lock.lock();
        try {
            idleInstances.started(handle);
            open(handle);
            long now = nanoTime.getAsLong();
            while (handle.retired || !idleInstances.serve(handle, now)) {
                if (hasNoMoreWork(handle) || idleInstances.mayLeave(handle)) {
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

    @Override
    public void rest(InstanceHandle handle, long sinceNanos) {
        lock.lock();
        try {
            idleInstances.rest(handle, sinceNanos);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean leave(InstanceHandle handle) {
        lock.lock();
        try {
            if (!handle.resting || hasNoMoreWork(handle)) {
                return false;
            }
            idleInstances.leave(handle, nanoTime.getAsLong());
            return true;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Returns whether an instance has no more work, ever. If no instance has work, the others are woken: only this
     * instance may have been woken for the last request, and the request may have been completed in the queue.
     */
    @GuardedBy("lock")
    private boolean hasNoMoreWork(InstanceHandle handle) {
        boolean over = !batcher.mayHaveWork();
        if (over) {
            idleInstances.wakeAll();
        }
        return over || handle.retired;
    }

    @Override
    public boolean poll(InstanceHandle handle) {
        lock.lock();
        try {
            open(handle);
            return !handle.retired && idleInstances.serve(handle, nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean awaitWork(InstanceHandle handle) {
        lock.lock();
        try {
            idleInstances.started(handle);
            open(handle);
            long now = nanoTime.getAsLong();
            while (handle.retired || !hasWork(handle, now)) {
                if (hasNoMoreWork(handle) || idleInstances.mayLeave(handle)) {
                    return false;
                }
                idleInstances.await(handle, now);
                now = nanoTime.getAsLong();
            }
            // The other batches need not wait for the permit of this instance.
            idleInstances.wakeFirst(batcher.batches() - 1);
            return true;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean hasWork(InstanceHandle handle) {
        lock.lock();
        try {
            open(handle);
            return hasWork(handle, nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private boolean hasWork(InstanceHandle handle, long now) {
        return !handle.taken.isEmpty() || batcher.hasEnded() || (!handle.isFull() && batcher.hasBatch(now));
    }

    @Override
    public boolean finishDirectRun(InstanceHandle handle, boolean mayRun) {
        boolean finished = false;
        lock.lock();
        try {
            try {
                boolean more = finish(handle, mayRun);
                finished = true;
                return more;
            } finally {
                if (!finished) {
                    idleInstances.reclaim(handle);
                }
            }
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private boolean finish(InstanceHandle handle, boolean mayRun) {
        long now = nanoTime.getAsLong();
        if (mayRun
                && !handle.retired
                && !handle.bound
                && !batcher.needsInstanceThread()
                && idleInstances.serve(handle, now)) {
            return true;
        }
        idleInstances.addIdle(handle);
        if (handle.retired || (batcher.isStopped() && handle.thread != null)) {
            idleInstances.release(handle);
        } else if (handle.bound
                || batcher.hasEnded()
                || !handle.taken.isEmpty() // left from a failure
                || !handle.ended().isEmpty()) {
            idleInstances.wakeIfWaiting(handle);
        } else {
            idleInstances.wakeOne(now);
        }
        return false;
    }

    @Override
    public void deferred(InstanceHandle handle) {
        lock.lock();
        try {
            handle.deferred++;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void deferredEnded(InstanceHandle handle) {
        lock.lock();
        try {
            handle.deferred--;
            idleInstances.unblock(handle, nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void availabilityChanged(InstanceHandle handle, BooleanSupplier unavailable) {
        List<ScheduledRequest> stranded;
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            idleInstances.setUnavailable(handle, unavailable.getAsBoolean(), now);
            batcher.availabilityChanged(now);
            stranded = idleInstances.removeStranded();
        } finally {
            lock.unlock();
        }
        refuse(stranded);
    }

    /** Refuses requests that no instance takes any more. */
    static void refuse(List<ScheduledRequest> stranded) {
        IndependentCalls.rejectAll(
                stranded, request -> SchedulerErrors.stranded(request.checked()), FailureReason.REJECTED);
    }

    @Override
    public boolean retire(InstanceHandle handle) {
        lock.lock();
        try {
            if (batcher.retire(handle)) {
                handle.bound = true;
                idleInstances.startUnstarted(handle); // its thread ends it when it has no more batches
                return true;
            }
            handle.retired = true;
            if (!idleInstances.release(handle)) { // it may have been woken for a batch, and wait for its permit
                idleInstances.wakeOne(nanoTime.getAsLong());
            }
            return false;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void lose(InstanceHandle handle) {
        lock.lock();
        try {
            batcher.lose(handle);
            if (!batcher.mayHaveWork()) {
                idleInstances.wakeAll();
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public List<ScheduledRequest> deregister(InstanceHandle handle) {
        List<ScheduledRequest> left;
        List<ScheduledRequest> stranded = List.of();
        lock.lock();
        try {
            idleInstances.remove(handle);
            left = batcher.deregister(handle, idleInstances.hasNoInstances());
            if (!idleInstances.hasNoInstances()) {
                idleInstances.wakeOne(nanoTime.getAsLong()); // this instance may have been woken for a waiting request
                stranded = idleInstances.removeStranded();
            }
        } finally {
            lock.unlock();
        }
        refuse(stranded);
        return left;
    }
}
