package dev.nereid.scheduler.queue;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.ArrayList;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Holds the idle instances of a source, and chooses the one to wake. Guarded by the lock of the queue.
 *
 * <p><b>Wake-ups.</b> An instance without a batch waits in one of two ways. One instance at most is the
 * <em>leader</em>: requests wait but may still wait for others, and the leader sleeps until the oldest has waited long
 * enough. All other waiting instances are <em>idle</em> and sleep until they are woken. An offered request wakes the
 * leader if it completes a batch; without a leader it wakes one idle instance, unless as many instances are woken
 * already as there are batches. An instance that takes a batch and leaves requests behind does the same. Hence:
 *
 * <p><b>No lost wake-up.</b> Whenever the lock is free and requests wait, one of these holds: every instance is busy
 * and will check the queue afterwards; an instance is woken and about to take the lock; a leader sleeps, and the
 * waiting requests need not run before it wakes. Time alone changes the third case, and the leader wakes for it. An
 * instance that forms a batch by the batching strategy is busy in this sense: it checks the queue again afterwards.
 *
 * <p><b>Direct execution.</b> A thread that offers a request may acquire an idle instance to run it on, without a
 * wake-up. That instance is busy in the sense above: the thread checks the queue again before it releases the instance.
 *
 * <p><b>Deferred executions.</b> An instance with the maximum number of deferred executions is blocked: it is not idle
 * and not the leader, and becomes idle with the end of one of them. It is busy in the sense above: the thread that
 * makes it idle checks whether waiting requests need it.
 *
 * <p><b>Unavailable instances.</b> An instance that its backend marks as unavailable is blocked likewise, until the
 * backend marks it as available. If it was woken, or the leader, it wakes another one in its place before it sleeps.
 * Once the model is to be unloaded, requests that wait while no instance takes any are refused.
 *
 * <p><b>Late start.</b> An instance may have no thread yet. It is idle, behind all instances with a thread; to wake it
 * is to start its thread, after the release of the lock. Until that thread takes the lock, or the start has failed, the
 * instance is woken in the sense above. After a failed start it is idle again: the waiting requests are left to the
 * instances that are busy, woken or waiting with a thread, or completed by the thread that failed if there is none.
 * Where all instances are woken to end, instances without a thread are left idle, unless batches are bound to them; the
 * thread that closes them removes them.
 *
 * <p><b>End of an idle thread.</b> A thread that was idle for some time is woken to end. If there is no work when it takes
 * the lock, the instance becomes one without a thread in the same step, as before its late start; so a request finds
 * either a woken thread or an idle instance. The thread may go on after all, for a request or for the end of its instance;
 * it then takes the instance back, after the end of a direct execution.
 *
 * <p><b>Order.</b> The instance with the fewest deferred executions is woken first, so that executions of several
 * instances overlap on their device. Of several such instances it is the one with the lowest load by the rate limiter,
 * and of equals the one that became idle last: its caches are warm. A woken instance may have to wait for its permit;
 * meanwhile it is busy in the sense above, and leaves the requests in the queue until the permit is granted.
 */
final class IdleInstances {
    private final QueueLock lock;
    private final Batcher batcher;
    private @Nullable InstanceHandle leader;

    /** The time at which the leader wakes. */
    private long leaderNanos;

    /** The instance that became idle last; head of a linked list. */
    private @Nullable InstanceHandle idle;

    /** The waiting instances that may take no batch: see {@link InstanceHandle#isFull}. */
    private final List<InstanceHandle> blocked = new ArrayList<>(0);

    /** The number of instances that were woken and did not take the lock yet. */
    private int woken;

    private int number;

    /** The number of registered instances that are unavailable. */
    private int unavailable;

    /** {@code true} if requests that wait while no instance takes any are refused. */
    private boolean leaving;

    IdleInstances(QueueLock lock, Batcher batcher) {
        this.lock = lock;
        this.batcher = batcher;
    }

    void add() {
        number++;
    }

    /** Deregisters an instance, which is in use by the calling thread alone. */
    void remove(InstanceHandle handle) {
        number--;
        unavailable -= handle.unavailable ? 1 : 0;
        handle.deregistered = true;
        if (handle.starting) { // its thread failed before it took a batch
            handle.starting = false;
            woken--;
        }
    }

    boolean hasNoInstances() {
        return number == 0;
    }

    /** Returns whether an instance waits for a batch to fill. */
    boolean hasLeader() {
        return leader != null;
    }

    /**
     * Takes a batch, expired requests and ended sequences for an instance. Wakes another instance for the rest.
     *
     * @return whether any were taken; if not, the instance itself waits for the rest of the queue
     */
    boolean serve(InstanceHandle handle, long now) {
        long end = now;
        if (handle.taken.isEmpty() && !handle.isFull()) { // requests left from a failure go first
            end = batcher.take(handle, now);
        }
        batcher.takeEnded(handle);
        boolean found = !handle.taken.isEmpty()
                || !handle.expired.isEmpty()
                || !handle.ended().isEmpty();
        if (found) {
            if (!batcher.isPlain() && batcher.isStopped()) {
                wakeAll(); // instances that waited for a batch being formed check whether requests are left
            }
            wakeOne(end);
        }
        return found;
    }

    /** Wakes an instance if the waiting requests need one more. */
    void wakeOne(long now) {
        if (batcher.isEmpty() || batcher.defersWakeup()) {
            return;
        }
        if (leader == null) {
            wakeFirst(batcher.batches());
        } else if (batcher.mayHaveBatch(now) || sleepsTooLong(now)) {
            wake(leader);
        }
    }

    /** Returns whether requests have waited for longer than those for which the leader sleeps. */
    private boolean sleepsTooLong(long now) {
        return batcher.mayWaitLess() && now + batcher.waitNanos(now) - leaderNanos < 0;
    }

    /**
     * Returns whether a thread may run an idle instance. It may if no instance is woken, and the idle one may run on
     * any thread.
     */
    boolean mayRunDirectly() {
        return leader == null && woken == 0 && idle != null && !idle.placed;
    }

    /** Removes and returns the last one to become idle. Called only if one {@linkplain #mayRunDirectly may run}. */
    InstanceHandle acquireIdle() {
        InstanceHandle acquired = requireNonNull(idle);
        idle = acquired.idleBefore;
        acquired.idleBefore = null;
        return acquired;
    }

    /**
     * Takes requests like {@link #serve}, for direct execution. If that throws, such as at the end of the stack of a
     * plugin that submits, the instance is {@linkplain #reclaim reclaimed}.
     */
    boolean serveDirectly(InstanceHandle handle, long now) {
        boolean succeeded = false;
        try {
            boolean found = serve(handle, now);
            succeeded = true;
            return found;
        } finally {
            if (!succeeded) {
                reclaim(handle);
            }
        }
    }

    /**
     * Makes an instance idle again after a failed direct execution, unless it is idle. Wakes its own thread, which
     * continues with the requests that were taken.
     */
    void reclaim(InstanceHandle handle) {
        if (handle.waiting && !handle.blocked && !isIdle(handle)) {
            addIdle(handle);
        }
        wakeIfWaiting(handle);
    }

    /** Adds an instance without a thread to the idle ones. Others go before it, since their caches are warm. */
    void addUnstarted(InstanceHandle handle) {
        if (handle.retired || handle.thread != null) { // removed before it was added
            return;
        }
        handle.waiting = true;
        InstanceHandle last = idle;
        if (last == null || handle.isFull()) {
            addIdle(handle);
            return;
        }
        while (last.idleBefore != null) {
            last = last.idleBefore;
        }
        last.idleBefore = handle;
    }

    /** Makes the calling thread the instance's own, if it has none. Called before the thread takes batches. */
    void started(InstanceHandle handle) {
        handle.resting = false;
        if (handle.thread == null) {
            if (handle.starting) {
                handle.thread = Thread.currentThread();
                handle.starting = false;
                woken--;
            } else {
                takeBack(handle);
            }
        }
    }

    /**
     * Wakes the thread of an instance that is idle since a time or longer, so that it ends. Does nothing if there is work,
     * or if the thread could not be started again.
     */
    void rest(InstanceHandle handle, long sinceNanos) {
        if (handle.thread != null
                && handle.starter != null
                && !handle.retired
                && !handle.bound
                && !batcher.isStopped()
                && batcher.isEmpty()
                && handle.idleNanos - sinceNanos <= 0
                && isIdle(handle)) {
            handle.resting = true;
            wake(handle);
        }
    }

    /** Starts the thread of an instance that waits without one. */
    void startUnstarted(InstanceHandle handle) {
        if (handle.thread == null && (handle.blocked || isIdle(handle))) {
            wake(handle);
        }
    }

    /** Returns whether the calling thread, which found no work, was woken to end. */
    boolean mayLeave(InstanceHandle handle) {
        return handle.resting && !handle.retired && !handle.bound && batcher.isEmpty() && !handle.isFull();
    }

    /** Makes an instance one without a thread. Called by the instance's own thread, which has found no work before. */
    void leave(InstanceHandle handle, long now) {
        handle.resting = false;
        handle.thread = null;
        addUnstarted(handle);
        if (handle.bound || batcher.isStopped() || batcher.hasEnded()) { // its thread ends it
            wakeIfWaiting(handle);
        } else {
            wakeOne(now); // something may have come since it looked
        }
    }

    /**
     * Makes an instance idle again after its thread was not started, unless another thread removes the instance. Wakes
     * another instance for the waiting requests.
     *
     * @return whether no other instance will check the waiting requests without a further request
     */
    boolean startFailed(InstanceHandle handle, long now) {
        handle.starting = false;
        woken--;
        if (handle.thread != null) { // it deregisters the instance, and wakes another one then
            lock.wake(handle.thread);
            return false;
        }
        if (handle.retired) {
            wakeOne(now); // the instance in its place, which may have no thread either
            return false;
        }
        addUnstarted(handle);
        if (unstarted() == number) {
            return true;
        }
        wakeStarted(now);
        return false;
    }

    /** Returns the number of instances that wait and have no thread. */
    private int unstarted() {
        int count = 0;
        for (InstanceHandle handle = idle; handle != null; handle = handle.idleBefore) {
            count += handle.thread == null ? 1 : 0;
        }
        for (InstanceHandle handle : blocked) {
            count += handle.thread == null ? 1 : 0;
        }
        return count;
    }

    /** Wakes an instance that has a thread if the waiting requests need one more. */
    private void wakeStarted(long now) {
        InstanceHandle handle = idle;
        while (handle != null && handle.thread == null) {
            handle = handle.idleBefore;
        }
        if (leader != null) {
            wakeOne(now);
        } else if (handle != null && !batcher.isEmpty() && !batcher.defersWakeup() && woken < batcher.batches()) {
            wake(handle);
        }
    }

    /** Removes an instance without a thread; waits while another thread runs it, or tries to start its thread. */
    void removeUnstarted(InstanceHandle handle) {
        takeBack(handle);
    }

    /** Makes the caller the own thread of an instance without one; waits while another thread uses the instance. */
    private void takeBack(InstanceHandle handle) {
        handle.thread = Thread.currentThread();
        if (handle.blocked || isIdle(handle)) {
            unlink(handle);
        } else if (handle.waiting) { // run by a submitting thread, which wakes this one when it is done
            sleepWhileInUse(handle);
            woken--;
        } else {
            sleepWhileInUse(handle);
        }
    }

    private void sleepWhileInUse(InstanceHandle handle) {
        boolean interrupted = false;
        while (handle.starting || handle.waiting) {
            interrupted |= lock.sleep(handle);
        }
        if (interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    /** Adds an instance to the idle ones, or to the blocked ones. */
    void addIdle(InstanceHandle handle) {
        if (handle.isFull()) {
            handle.blocked = true;
            blocked.add(handle);
            return;
        }
        handle.idleBefore = idle;
        idle = handle;
    }

    /** Marks an instance as unavailable, so that it takes no batches, or as available. */
    void setUnavailable(InstanceHandle handle, boolean value, long now) {
        if (handle.unavailable == value || handle.deregistered) {
            return;
        }
        handle.unavailable = value;
        unavailable += value ? 1 : -1;
        if (!value) {
            unblock(handle, now);
        } else if (handle == leader) {
            wake(handle); // it blocks itself, and wakes another one
        } else if (isIdle(handle)) {
            unlink(handle);
            handle.waiting = true;
            addIdle(handle);
        }
    }

    /**
     * From now on, requests that wait while no instance takes any are refused: {@link #removeStranded} removes them.
     */
    void leave() {
        leaving = true;
    }

    /** Returns whether requests would wait in vain: no instance takes any, and the model is to be unloaded. */
    boolean isStranded() {
        return leaving && number > 0 && unavailable == number;
    }

    /** Removes the requests that would wait in vain. */
    List<ScheduledRequest> removeStranded() {
        List<ScheduledRequest> removed = isStranded() ? batcher.removeWaiting() : List.of();
        if (!removed.isEmpty() && !batcher.mayHaveWork()) {
            wakeAll();
        }
        return removed;
    }

    /** Makes an instance idle if it is not blocked any more. */
    void unblock(InstanceHandle handle, long now) {
        if (handle.blocked && !handle.isFull()) {
            handle.blocked = false;
            blocked.remove(handle);
            handle.idleNanos = now;
            addIdle(handle);
            if (batcher.isStopped() && handle.thread != null) { // it may have no more work, ever
                wake(handle);
            } else {
                wakeOne(now);
            }
        }
    }

    /** Wakes the first idle instance, if there is one and fewer instances are woken than there are batches. */
    void wakeFirst(long batches) {
        if (idle != null && woken < batches) {
            wake(first(idle));
        }
    }

    /** Returns the idle instance with the fewest deferred executions, then lowest load, then the least idle time. */
    private static InstanceHandle first(InstanceHandle idle) {
        InstanceHandle first = idle;
        for (InstanceHandle handle = idle.idleBefore; handle != null; handle = handle.idleBefore) {
            if (handle.deferred < first.deferred
                    || (handle.deferred == first.deferred && handle.load.getAsLong() < first.load.getAsLong())) {
                first = handle;
            }
        }
        return first;
    }

    /** Wakes all waiting instances, or starts their threads: they are to be notified of something. */
    void wakeEvery() {
        while (idle != null) {
            wake(idle);
        }
        while (!blocked.isEmpty()) {
            wake(blocked.getLast());
        }
        wakeAll();
    }

    /** Wakes all waiting instances that have a thread. */
    void wakeAll() {
        if (leader != null) {
            wake(leader);
        }
        InstanceHandle handle = idle;
        while (handle != null) {
            InstanceHandle before = handle.idleBefore;
            if (handle.thread != null) {
                wake(handle);
            }
            handle = before;
        }
        for (int i = blocked.size() - 1; i >= 0; i--) {
            if (blocked.get(i).thread != null) {
                wake(blocked.get(i));
            }
        }
    }

    /**
     * Wakes an instance that takes no more work, if it waits; returns whether it did. An instance without a thread is
     * removed instead: it is not woken any more.
     */
    boolean release(InstanceHandle handle) {
        if (handle.thread != null) {
            return wakeIfWaiting(handle);
        }
        boolean waits = handle.blocked || isIdle(handle);
        if (waits) {
            unlink(handle);
        }
        return waits;
    }

    /** Wakes an instance if it waits, or starts its thread; returns whether it waited. */
    boolean wakeIfWaiting(InstanceHandle handle) {
        boolean waits = handle == leader || handle.blocked || isIdle(handle);
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
        unlink(handle);
        woken++;
        if (handle.thread == null) {
            handle.starting = true;
            lock.later(requireNonNull(handle.starter));
        } else {
            lock.wake(handle.thread);
        }
    }

    private void unlink(InstanceHandle handle) {
        if (handle.blocked) {
            handle.blocked = false;
            blocked.remove(handle);
        } else if (handle == leader) {
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
    }

    /** Waits for work: as the leader for a limited time if there is none, or else until the instance is woken. */
    void await(InstanceHandle handle, long now) {
        if (lock.runLater()) { // before the instance waits: an action may fail
            return;
        }
        if (leader == null && batcher.needsLeader() && !handle.isFull()) {
            long nanos = batcher.waitNanos(now);
            leaderNanos = now + nanos;
            lead(handle, nanos);
        } else {
            idle(handle, now);
        }
    }

    private void idle(InstanceHandle handle, long now) {
        if (handle.unavailable) {
            wakeOne(now); // it may have been woken for a batch, or the leader
            if (lock.runLater()) {
                return;
            }
        }
        beginToWait(handle);
        handle.idleNanos = now;
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
     * Sleeps once, whatever ends the sleep: the caller checks queue and clock again. An interrupt is ignored: only a
     * backend could send it, and no execution runs.
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
