package dev.nereid.scheduler.queue;

import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * The lock of a queue, which wakes threads after its release. Safe for use by any thread. A thread that is called under
 * it is woken after it was given back, so that the thread does not wake up only to sleep again until the lock is free.
 *
 * <p>In place of a condition for each instance: the lists and nodes of those would have to come from one processor to
 * the other each time, and most of what an offer to an idle instance costs is such ways. It extends the lock that it is
 * so that what it guards can be checked.
 */
final class QueueLock extends ReentrantLock {
    private static final long serialVersionUID = 1;

    /** Is woken next; written with the lock. */
    private transient @Nullable Thread toWake;

    /**
     * Has a thread woken when the lock is given back, or at once if another one is called after it. With the lock.
     *
     * @param thread a thread that looks again at what it waits for whenever it wakes; {@code null} for none
     */
    void wake(@Nullable Thread thread) {
        LockSupport.unpark(toWake);
        toWake = thread;
    }

    /**
     * Gives the lock back, sleeps until the thread is woken or interrupted, and takes the lock again. With the lock,
     * held once. What woke the thread is not told, and an interruption is forgotten. Takes no memory.
     *
     * @param blocker what is waited for, for those who look at the thread
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
     * Does as {@link #sleep(Object)}, but not for longer than a time.
     *
     * @param nanos the longest time, above 0
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
        toWake = null;
        super.unlock();
        LockSupport.unpark(woken);
    }

    /** Not supported: a thread that awaits a condition would not wake those that were called. */
    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("newCondition: not offered (expected: sleep and wake)");
    }
}
