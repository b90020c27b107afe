package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.request.IndependentCalls;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Locks the requests and instances of a model. Safe for use by any thread. The thread that releases the lock then does
 * the work that follows from a change: it wakes threads, starts threads, which takes long and may fail, and completes
 * requests, since their observers are foreign code.
 *
 * <p>{@link #wake} defers the wake-up to the release, so that the thread does not wake up only to sleep again until the
 * lock is free. It replaces one condition for each instance: the lists and nodes of conditions would move between
 * processors at each wake-up, and such transfers dominate the cost of an offer to an idle instance. It extends
 * {@link ReentrantLock} so that {@code @GuardedBy} can be checked.
 */
public final class QueueLock extends ReentrantLock {
    private static final long serialVersionUID = 1;
    private static final Logger LOG = LoggerFactory.getLogger(QueueLock.class);

    /** The thread to wake next; written while the lock is held. */
    private transient @Nullable Thread toWake;

    /** The actions after the release, in this order; written while the lock is held. */
    private transient List<Runnable> later = List.of();

    /** Creates a lock that is free. */
    public QueueLock() {}

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
     * Runs an action when the lock is released, on the thread that releases it. The caller holds the lock.
     *
     * @param action may call foreign code; its exceptions are logged
     */
    public void later(Runnable action) {
        if (later.isEmpty()) {
            later = new ArrayList<>(2);
        }
        later.add(action);
    }

    /**
     * Releases the lock, sleeps, and takes the lock again. The thread sleeps until it is woken or interrupted. The
     * caller holds the lock once, and checks its condition again: this may return spuriously. Clears the interrupt
     * status. Does not allocate.
     *
     * @param blocker shown in thread dumps
     * @return whether the thread was interrupted
     */
    boolean sleep(Object blocker) {
        if (runLater()) {
            return false;
        }
        unlock();
        try {
            LockSupport.park(blocker);
            return Thread.interrupted();
        } finally {
            lock();
        }
    }

    /** Releases the lock, sleeps, and takes it again, as {@link #sleep(Object)} does, for a limited time above 0. */
    boolean sleep(Object blocker, long nanos) {
        if (runLater()) {
            return false;
        }
        unlock();
        try {
            LockSupport.parkNanos(blocker, nanos);
            return Thread.interrupted();
        } finally {
            lock();
        }
    }

    /**
     * Runs the waiting actions without the lock; returns whether there were any. They are not run right before the
     * sleep: an action that waits for something would use up the wake-up of the thread.
     */
    boolean runLater() {
        if (later.isEmpty()) {
            return false;
        }
        try {
            unlock();
        } finally {
            lock();
        }
        return true;
    }

    @Override
    public void unlock() {
        Thread woken = toWake;
        List<Runnable> actions = later;
        toWake = null;
        later = List.of();
        super.unlock();
        LockSupport.unpark(woken);
        if (!actions.isEmpty()) {
            IndependentCalls.forEach(actions, QueueLock::run);
        }
    }

    /** Runs an action; later actions are run also if it fails. */
    private static void run(Runnable action) {
        try {
            action.run();
        } catch (RuntimeException e) {
            LOG.atError().setCause(e).log("action after the change of a queue failed");
        }
    }

    /** Not supported: a thread that awaits a condition would not run the waiting actions. */
    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("newCondition: not supported (expected: sleep and wake)");
    }
}
