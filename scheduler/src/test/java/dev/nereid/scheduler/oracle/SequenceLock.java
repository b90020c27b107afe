package dev.nereid.scheduler.oracle;

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
 * Locks the sequences of a model. Safe for use by any thread. The thread that releases the lock does the work that
 * follows from a change, afterwards: it wakes threads and rejects requests, since observers of requests are foreign
 * code.
 *
 * <p>It is never taken twice by one thread.
 */
final class SequenceLock extends ReentrantLock {
    private static final long serialVersionUID = 1;

    private static final Logger LOG = LoggerFactory.getLogger(SequenceLock.class);

    /** The thread to wake next; written while the lock is held. */
    private transient @Nullable Thread toWake;

    /** The actions after the release, in this order; written while the lock is held. */
    private transient List<Runnable> later = List.of();

    /** Wakes a thread when the lock is released, or earlier. The caller holds the lock. */
    void wake(@Nullable Thread thread) {
        LockSupport.unpark(toWake);
        toWake = thread;
    }

    /** Runs an action when the lock is released, on the thread that releases it. Its failures are logged. */
    void later(Runnable action) {
        if (later.isEmpty()) {
            later = new ArrayList<>(2);
        }
        later.add(action);
    }

    /**
     * Releases the lock to run the waiting actions, and takes it again. Called before a thread marks itself as
     * sleeping: an action that waits for something would use up the wake-up that the mark allows.
     *
     * @return whether an action waited, so that the caller has to check its condition again
     */
    boolean runLater() {
        if (later.isEmpty()) {
            return false;
        }
        unlock();
        lock();
        return true;
    }

    /** Releases the lock, sleeps until the thread is woken, and takes the lock again. May return without reason. */
    void sleep(Object blocker) {
        unlock();
        try {
            LockSupport.park(blocker);
            Thread.interrupted(); // only a backend has this thread at hand, and no execution runs
        } finally {
            lock();
        }
    }

    /** Sleeps like {@link #sleep(Object)}, for a limited time, above 0. */
    void sleep(Object blocker, long nanos) {
        unlock();
        try {
            LockSupport.parkNanos(blocker, nanos);
            Thread.interrupted();
        } finally {
            lock();
        }
    }

    @Override
    public void unlock() {
        Thread woken = toWake;
        List<Runnable> actions = later;
        toWake = null;
        later = List.of();
        super.unlock();
        LockSupport.unpark(woken);
        IndependentCalls.forEach(actions, SequenceLock::run);
    }

    /** Runs an action; later actions are run also if it fails. */
    private static void run(Runnable action) {
        try {
            action.run();
        } catch (RuntimeException e) {
            LOG.atError().setCause(e).log("action of sequences failed");
        }
    }

    /** Not supported: a thread that awaits a condition would not run the waiting actions. */
    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("newCondition: not supported (expected: sleep and wake)");
    }
}
