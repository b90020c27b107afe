package dev.nereid.scheduler.sequence;

import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.locks.Condition;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The one lock of the sequences of a model. Safe for use by any thread. What follows from a change is done by the thread
 * that releases the lock, afterwards: threads are woken, and requests are rejected, whose observers are foreign code.
 *
 * <p>It is never taken twice by one thread.
 */
final class SequenceLock extends ReentrantLock {
    private static final long serialVersionUID = 1;

    private static final Logger LOG = LoggerFactory.getLogger(SequenceLock.class);

    /** The thread to wake next; written while the lock is held. */
    private transient @Nullable Thread toWake;

    /** What to do after the release, in this order; written while the lock is held. */
    private transient List<Runnable> later = List.of();

    /** Wakes a thread when the lock is released, or earlier. The caller holds the lock. */
    void wake(@Nullable Thread thread) {
        LockSupport.unpark(toWake);
        toWake = thread;
    }

    /** Runs an action when the lock is released, on the thread that releases it. What it throws is logged. */
    void later(Runnable action) {
        if (later.isEmpty()) {
            later = new ArrayList<>(2);
        }
        later.add(action);
    }

    /**
     * Releases the lock to run what waits for that, and takes it again. Before a thread marks itself as sleeping: an
     * action that waits for something would use up the wake-up that the mark allows.
     *
     * @return whether anything waited, so that the caller has to look again
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

    /** Does as {@link #sleep(Object)} for a limited time, above 0. */
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
        for (int i = 0; i < actions.size(); i++) {
            run(actions.get(i));
        }
    }

    /** Runs an action; those behind it are run also if it fails. */
    private static void run(Runnable action) {
        try {
            action.run();
        } catch (RuntimeException | Error e) {
            LOG.atError().setCause(e).log("action of sequences failed");
        }
    }

    /** Not supported: a thread that awaits a condition would not do what follows. */
    @Override
    public Condition newCondition() {
        throw new UnsupportedOperationException("newCondition: not supported (expected: sleep and wake)");
    }
}
