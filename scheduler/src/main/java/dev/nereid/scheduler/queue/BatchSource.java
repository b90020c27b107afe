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
 * Passes batches to the instances of one model. Guarded by the lock of the queue, which each method takes; no backend,
 * observer or other foreign code is called under it. An {@link InstanceHandle} is used by the thread that runs its
 * instance.
 *
 * <p><b>Pull.</b> Each instance takes its next batch itself when it is free; no dispatcher thread stands between
 * instances and threads that offer requests. {@link IdleInstances} decides which instance to wake.
 */
public final class BatchSource implements WorkSource {
    private final QueueLock lock;
    private final LongSupplier nanoTime;

    @GuardedBy("lock")
    private final WaitingRequests requests;

    @GuardedBy("lock")
    private final BatchTaker taker;

    @GuardedBy("lock")
    private final IdleInstances idleInstances;

    @GuardedBy("lock")
    private @Nullable RescheduledRequests rescheduledRequests;

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

    /** Accepts rescheduled requests from now on. Called before the first instance is registered. */
    void setRescheduledRequests(RescheduledRequests requests) {
        lock.lock();
        try {
            rescheduledRequests = requests;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public InstanceHandle register(Runnable directRun, LongSupplier load) {
        lock.lock();
        try {
            InstanceHandle handle = new InstanceHandle(directRun, load);
            if (rescheduledRequests != null) {
                handle.setRescheduler(rescheduledRequests.of(handle));
            }
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
            idleInstances.wakeOne(nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    @Override
    public List<ScheduledRequest> startFailed(InstanceHandle handle) {
        lock.lock();
        try {
            return idleInstances.startFailed(handle, nanoTime.getAsLong()) ? requests.drain() : List.of();
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

    @Override
    public boolean take(InstanceHandle handle) {
        lock.lock();
        try {
            idleInstances.started(handle);
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
        boolean over = !taker.mayHaveWork();
        if (over) {
            idleInstances.wakeAll();
        }
        return over || handle.retired;
    }

    @Override
    public boolean poll(InstanceHandle handle) {
        lock.lock();
        try {
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
            long now = nanoTime.getAsLong();
            while (handle.retired || handle.isFull() || !taker.hasBatch(now)) {
                if (hasNoMoreWork(handle) || idleInstances.mayLeave(handle)) {
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

    @Override
    public boolean hasWork(InstanceHandle handle) {
        lock.lock();
        try {
            return !handle.isFull() && taker.hasBatch(nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
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
        if (mayRun && !handle.retired && !requests.needInstanceThread() && idleInstances.serve(handle, now)) {
            return true;
        }
        idleInstances.addIdle(handle);
        if (handle.retired || (taker.isStopped() && handle.thread != null)) {
            idleInstances.release(handle);
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
            idleInstances.setUnavailable(handle, unavailable.getAsBoolean(), nanoTime.getAsLong());
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
            taker.lose(handle);
            if (!taker.mayHaveWork()) {
                idleInstances.wakeAll();
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public List<ScheduledRequest> deregister(InstanceHandle handle) {
        List<ScheduledRequest> stranded;
        lock.lock();
        try {
            idleInstances.remove(handle);
            if (idleInstances.hasNoInstances()) {
                return requests.drain();
            }
            idleInstances.wakeOne(nanoTime.getAsLong()); // this instance may have been woken for a waiting request
            stranded = idleInstances.removeStranded();
        } finally {
            lock.unlock();
        }
        refuse(stranded);
        return List.of();
    }
}
