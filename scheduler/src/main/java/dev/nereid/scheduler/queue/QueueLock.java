package dev.nereid.scheduler.queue;

import static java.util.Objects.requireNonNull;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Locks a queue, and wakes threads after its release. Safe for use by any thread. {@link #wake} defers the wake-up to
 * the release, so that the thread does not wake up only to sleep again until the lock is free. Threads of instances
 * without one are started after the release, too: a start takes long, and may fail.
 *
 * <p>It replaces one condition for each instance: the lists and nodes of conditions would move between processors at
 * each wake-up, and such transfers dominate the cost of an offer to an idle instance. It extends {@link ReentrantLock}
 * so that {@code @GuardedBy} can be checked.
 */
final class QueueLock extends ReentrantLock {
    private static final long serialVersionUID = 1;

    /** The thread to wake next; written while the lock is held. */
    private transient @Nullable Thread toWake;

    /** The instances with threads to be started; head of a linked list, written while the lock is held. */
    private transient @Nullable InstanceHandle toStart;

    /**
     * Wakes a thread when the lock is released. Wakes it earlier if another thread is passed meanwhile. The caller
     * holds the lock.
     *
     * @param thread a thread that checks its condition again whenever it wakes; {@code null} for none
     */
    void wake(@Nullable Thread thread) {
        LockSupport.unpark(toWake);
        toWake = thread;
    }

    /**
     * Starts the thread of an instance when the lock is released, on the thread that releases it. The caller holds the
     * lock.
     *
     * @param handle an instance that is marked as starting
     */
    void start(InstanceHandle handle) {
        handle.idleBefore = toStart;
        toStart = handle;
    }

    /**
     * Releases the lock, sleeps, and takes the lock again. The thread sleeps until it is woken or interrupted. The
     * caller holds the lock once. May return spuriously, and clears the interrupt status. Does not allocate.
     *
     * @param blocker shown in thread dumps
     * @return whether the thread was interrupted
     */
    boolean sleep(Object blocker) {
        unlock();
        try {
            LockSupport.park(blocker);
            return Thread.interrupted();
        } finally {
            lock();
        }
    }

    /**
     * Releases the lock, sleeps, and takes the lock again, like {@link #sleep(Object)}, for a limited time.
     *
     * @param nanos the maximum time, above 0
     */
    boolean sleep(Object blocker, long nanos) {
        unlock();
        try {
            LockSupport.parkNanos(blocker, nanos);
            return Thread.interrupted();
        } finally {
            lock();
        }
    }

    @Override
    public void unlock() {
        Thread woken = toWake;
        InstanceHandle starting = toStart;
        toWake = null;
        toStart = null;
        super.unlock();
        LockSupport.unpark(woken);
        if (starting != null) {
            startAll(starting);
        }
    }

    private static void startAll(InstanceHandle first) {
        InstanceHandle handle = first;
        while (handle != null) {
            InstanceHandle next = handle.idleBefore; // read first: the started thread uses the handle
            handle.idleBefore = null;
            requireNonNull(handle.starter).run();
            handle = next;
        }
    }

    /** Not supported: a thread that awaits a condition would not run deferred wake-ups. */
    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("newCondition: not supported (expected: sleep and wake)");
    }
}
