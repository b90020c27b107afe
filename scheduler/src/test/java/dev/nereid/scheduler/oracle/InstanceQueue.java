package dev.nereid.scheduler.oracle;

import dev.nereid.api.statistics.SequenceEndReason;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.WorkSource;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.ArrayList;
import java.util.List;
import java.util.function.BooleanSupplier;
import java.util.function.LongSupplier;
import org.jspecify.annotations.Nullable;

/**
 * The sequences of one instance, and the thread that runs it. Guarded by the lock of the sequences, which the methods
 * of {@link WorkSource} take; the caller of the others holds it.
 *
 * <p><b>Wake-ups.</b> The instance's own thread sleeps while there is no batch. A change that may make a batch wakes
 * it; so does time, if requests wait for others. While another thread runs the instance directly, its own thread
 * sleeps; the end of the direct execution wakes it if work is left.
 */
final class InstanceQueue implements SequenceInstance, WorkSource {
    /**
     * The use of an instance by a strategy.
     *
     * @param oneByOne whether each execution ends before the next one begins
     * @param rescheduler takes requests that are to be rescheduled; {@code null} if none is
     */
    record Uses(boolean oneByOne, @Nullable SequenceRescheduler rescheduler) {}

    private final SequenceTable owner;
    private final SequenceLock lock;
    private final LongSupplier nanoTime;

    private final Slots slots;

    private final SlotStrategy strategy;

    private @Nullable InstanceHandle handle;

    private final SlotThread own;

    private final Uses uses;

    /** {@code true} while another thread runs the instance. */
    private boolean direct;

    /** {@code true} if sequences may get a slot of the instance. */
    private boolean open;

    private boolean retired;

    /** {@code true} if the backend marked the instance as unavailable. */
    private boolean unavailable;

    /** The ended sequences of which the instance is not notified. */
    private final List<InstanceHandle.EndedSequence> ended = new ArrayList<>(0);

    private int deferred;

    /** The number of waiting requests that only the instance's own thread may execute. */
    private int needingThread;

    /**
     * Creates the queue of an instance, which is not registered.
     *
     * @param strategy makes batches of the requests in these slots
     */
    InstanceQueue(
            SequenceTable owner,
            SequenceLock lock,
            LongSupplier nanoTime,
            Slots slots,
            SlotStrategy strategy,
            Uses uses) {
        this.owner = owner;
        this.lock = lock;
        this.nanoTime = nanoTime;
        this.slots = slots;
        this.strategy = strategy;
        this.uses = uses;
        this.own = new SlotThread(lock);
    }

    // What the owner calls, under the lock.

    @Override
    public int lowestFree() {
        int slot = slots.lowestFree();
        return open && !retired && !unavailable && slot < slots.capacity() ? slot : Integer.MAX_VALUE;
    }

    @Override
    public int slotsUsed() {
        return slots.used();
    }

    @Override
    public int slots() {
        return open && !retired ? slots.capacity() : slots.used();
    }

    @Override
    public void place(LiveSequence sequence) {
        sequence.slot = slots.occupy(sequence);
        sequence.instance = this;
    }

    @Override
    public void vacate(LiveSequence sequence) {
        slots.vacate(sequence.slot, sequence);
        sequence.instance = null;
        if (slots.used() == 0 && (retired || owner.isStopped())) {
            wakeThread(); // it may have no more work, ever
        }
    }

    @Override
    public void count(ScheduledRequest request, int added) {
        needingThread += request.needsInstanceThread() ? added : 0;
    }

    @Override
    public void changed(LiveSequence sequence, long now) {
        strategy.changed(sequence, now);
    }

    @Override
    public void endHold() {
        strategy.endHold();
    }

    @Override
    public void wakeForWork(long now) {
        if (own.isIdle() && !direct && mayTake() && own.sleepsLonger(now, strategy.waitNanos(now))) {
            wake();
        }
    }

    @Override
    public @Nullable InstanceHandle acquire(long now) {
        InstanceHandle acquired = handle;
        if (!own.isIdle() || direct || acquired == null || needingThread > 0) {
            return null;
        }
        direct = true;
        boolean found = false;
        try {
            found = serve(acquired, now);
        } finally {
            if (!found) {
                endDirect(acquired, now);
            }
        }
        return found ? acquired : null;
    }

    @Override
    public void removeWaiting(List<ScheduledRequest> removed) {
        removed.addAll(owner.removal().removeWaiting(slots, SequenceEndReason.UNLOADED));
    }

    /** Wakes the instance's own thread, or starts it. */
    private void wake() {
        if (!direct) { // the end of the direct execution checks everything
            own.wake();
        }
    }

    @Override
    public void wakeThread() {
        if (!direct) {
            own.wakeSleeping();
        }
    }

    @Override
    public boolean isUnavailable() {
        return unavailable;
    }

    /** Returns whether the instance may have another execution. */
    private boolean mayTake() {
        InstanceHandle registered = handle;
        return registered != null && !unavailable && deferred < (uses.oneByOne() ? 1 : registered.maxDeferred());
    }

    @Override
    public void sequenceEnded(InstanceHandle.EndedSequence sequence) {
        ended.add(sequence);
        wake();
    }

    /**
     * Takes a batch, unless there is one from before a failure, and the sequences that ended.
     *
     * @return whether there are any
     */
    private boolean serve(InstanceHandle instance, long now) {
        if (instance.taken().isEmpty() && mayTake()) {
            strategy.take(instance, now, owner.isStopped());
        }
        instance.ended().addAll(ended);
        ended.clear();
        return !instance.taken().isEmpty() || !instance.ended().isEmpty();
    }

    /** Returns whether the instance has no more work, ever. */
    private boolean isOver() {
        return slots.used() == 0 && ended.isEmpty() && (retired || owner.isStopped());
    }

    // What the instance calls.

    @Override
    public InstanceHandle register(Runnable directRun, LongSupplier load) {
        lock.lock();
        try {
            InstanceHandle registered = new InstanceHandle(directRun, load);
            owner.placement().register(this);
            handle = registered;
            SequenceRescheduler rescheduler = uses.rescheduler();
            if (rescheduler != null) {
                registered.setRescheduler(rescheduler);
            }
            return registered;
        } finally {
            lock.unlock();
        }
    }

    /** Opens the slots for sequences: the instance is warm. */
    private void open() {
        if (!open && handle != null) {
            open = true;
            owner.placement().placeBacklog(nanoTime.getAsLong());
        }
    }

    @Override
    public void addUnstarted(InstanceHandle instance, Runnable start) {
        lock.lock();
        try {
            if (!retired && own.startLate(start)) {
                open();
                wakeForWork(nanoTime.getAsLong());
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public List<ScheduledRequest> startFailed(InstanceHandle instance) {
        lock.lock();
        try {
            return own.startFailed()
                    ? owner.removal().removeWaiting(slots, SequenceEndReason.INSTANCE_LOST)
                    : List.of();
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void removeUnstarted(InstanceHandle instance) {
        lock.lock();
        try {
            own.remove();
            while (own.isStarting() || direct) {
                if (!lock.runLater()) {
                    own.sleepUnmarked();
                }
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean take(InstanceHandle instance) {
        lock.lock();
        try {
            begin();
            while (direct || !serve(instance, nanoTime.getAsLong())) {
                if (!direct && (isOver() || mayLeave())) {
                    return false;
                }
                await();
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean awaitWork(InstanceHandle instance) {
        lock.lock();
        try {
            begin();
            while (direct || !isWorkWaiting(instance)) {
                if (!direct && (isOver() || mayLeave())) {
                    return false;
                }
                await();
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void rest(InstanceHandle instance, long sinceNanos) {
        lock.lock();
        try {
            if (!direct && !retired && !owner.isStopped()) {
                own.rest(sinceNanos);
            }
        } finally {
            lock.unlock();
        }
    }

    /** Returns whether the instance's own thread, which found no work, was woken to end. */
    private boolean mayLeave() {
        return own.isResting()
                && !retired
                && !owner.isStopped()
                && mayTake()
                && strategy.waitNanos(nanoTime.getAsLong()) == SlotStrategy.NOTHING_WAITS;
    }

    @Override
    public boolean leave(InstanceHandle instance) {
        lock.lock();
        try {
            if (!own.isResting() || isOver()) {
                return false;
            }
            own.leave(() -> {});
            if (retired || owner.isStopped() || !ended.isEmpty()) {
                own.wake(); // also where it ends when its sequences have ended
            } else {
                wakeForWork(nanoTime.getAsLong()); // something may have come since it looked
            }
            return true;
        } finally {
            lock.unlock();
        }
    }

    private boolean isWorkWaiting(InstanceHandle instance) {
        return !instance.taken().isEmpty()
                || !ended.isEmpty()
                || (mayTake() && strategy.hasBatch(nanoTime.getAsLong(), owner.isStopped()));
    }

    /** Makes the calling thread the instance's own. */
    private void begin() {
        own.begin();
        open();
    }

    /** Sleeps until the thread is woken, or the waiting requests have waited long enough. */
    private void await() {
        if (lock.runLater()) {
            return;
        }
        long now = nanoTime.getAsLong();
        long nanos = direct || !mayTake() ? SlotStrategy.NOTHING_WAITS : strategy.waitNanos(now);
        own.sleep(now, nanos);
    }

    @Override
    public boolean poll(InstanceHandle instance) {
        lock.lock();
        try {
            open();
            return !direct && serve(instance, nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean hasWork(InstanceHandle instance) {
        lock.lock();
        try {
            open();
            return isWorkWaiting(instance);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean finishDirectRun(InstanceHandle instance, boolean mayRun) {
        lock.lock();
        try {
            long now = nanoTime.getAsLong();
            boolean found = false;
            try {
                found = mayRun && !retired && needingThread == 0 && serve(instance, now);
            } finally {
                if (!found) {
                    endDirect(instance, now);
                }
            }
            return found;
        } finally {
            lock.unlock();
        }
    }

    private void endDirect(InstanceHandle instance, long now) {
        direct = false;
        if (own.isAwake()) { // it waits to remove the instance
            own.wakeAlways();
        } else if (!instance.taken().isEmpty() || !ended.isEmpty() || isOver()) {
            wake();
        } else {
            wakeForWork(now);
        }
    }

    @Override
    public void deferred(InstanceHandle instance) {
        lock.lock();
        try {
            deferred++;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void deferredEnded(InstanceHandle instance) {
        lock.lock();
        try {
            deferred--;
            wakeForWork(nanoTime.getAsLong());
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void availabilityChanged(InstanceHandle instance, BooleanSupplier isUnavailable) {
        lock.lock();
        try {
            boolean before = unavailable;
            unavailable = isUnavailable.getAsBoolean();
            if (handle != null && unavailable != before) {
                long now = nanoTime.getAsLong();
                owner.placement().placeBacklog(now); // nothing is free on it if it takes no batches
                owner.removal().refuseStranded();
                wakeForWork(now);
            }
        } finally {
            lock.unlock();
        }
    }

    @Override
    public boolean retire(InstanceHandle instance) {
        lock.lock();
        try {
            retired = true;
            boolean keeps = slots.used() > 0 || !ended.isEmpty();
            if (!keeps) {
                wakeThread();
            } else {
                own.startIfNone(); // its thread ends it when its sequences have ended
            }
            return keeps;
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void lose(InstanceHandle instance) {
        lock.lock();
        try {
            owner.removal().endAll(slots);
        } finally {
            lock.unlock();
        }
    }

    @Override
    public List<ScheduledRequest> deregister(InstanceHandle instance) {
        lock.lock();
        try {
            if (handle != null) {
                strategy.close();
            }
            handle = null;
            retired = true;
            owner.removal().endAll(slots);
            instance.ended().addAll(ended);
            ended.clear();
            return owner.removal().deregister(this);
        } finally {
            lock.unlock();
        }
    }
}
