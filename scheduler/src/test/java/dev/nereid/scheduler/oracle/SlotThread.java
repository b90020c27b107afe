package dev.nereid.scheduler.oracle;

import static java.util.Objects.requireNonNull;

import org.jspecify.annotations.Nullable;

/**
 * Starts, wakes and pauses the own thread of an instance with sequences. Guarded by the lock of the sequences, which
 * the caller holds.
 *
 * <p>An instance may have no thread yet. To wake it is to start its thread, after the release of the lock.
 */
final class SlotThread {
    private final SequenceLock lock;

    /** The thread, once it takes batches, or the thread that waits to remove the instance. */
    private @Nullable Thread thread;

    private @Nullable Runnable starter;

    /** {@code true} if the thread is about to start. */
    private boolean starting;

    /** {@code true} while the thread sleeps, and was not woken. */
    private boolean sleeping;

    /** {@code true} if it sleeps until {@link #wakeNanos} at the latest. */
    private boolean timed;

    private long wakeNanos;

    /** The time at which it began to sleep. */
    private long sleptNanos;

    /** {@code true} if the thread was woken to end, unless there is work. */
    private boolean resting;

    SlotThread(SequenceLock lock) {
        this.lock = lock;
    }

    /** Sets the action that starts the thread, if there is none. */
    boolean startLate(Runnable start) {
        if (thread == null) {
            starter = start;
        }
        return thread == null;
    }

    /** Makes the calling thread the instance's own. */
    void begin() {
        resting = false;
        if (thread == null) {
            thread = Thread.currentThread();
            starting = false;
        }
    }

    /** Wakes the thread to end, if it has slept without a limit since a time or longer. */
    void rest(long sinceNanos) {
        if (sleeping && !timed && sleptNanos - sinceNanos <= 0) {
            resting = true;
            wakeSleeping();
        }
    }

    /** Returns whether the thread was woken to end. */
    boolean isResting() {
        return resting;
    }

    /** Makes the instance one without a thread. Called by its own thread. */
    void leave(Runnable start) {
        resting = false;
        thread = null;
        starter = start;
    }

    /**
     * Records that the thread was not started.
     *
     * @return {@code false} if another thread waits to remove the instance
     */
    boolean startFailed() {
        starting = false;
        if (thread != null) {
            lock.wake(thread);
        }
        return thread == null;
    }

    /** Makes the calling thread the one that removes the instance; no thread is started any more. */
    void remove() {
        thread = Thread.currentThread();
        starter = null;
    }

    boolean isStarting() {
        return starting;
    }

    private boolean mayStart() {
        return thread == null && starter != null && !starting;
    }

    /** Returns whether the thread sleeps, or waits for its start. */
    boolean isIdle() {
        return sleeping || mayStart();
    }

    /** Starts the thread if there is none, and none is being started. */
    void startIfNone() {
        if (mayStart()) {
            wake();
        }
    }

    /** Returns whether the thread exists and does not sleep. */
    boolean isAwake() {
        return thread != null && !sleeping;
    }

    /** Returns whether the idle thread has to be woken for a batch that may be taken after some time. */
    boolean sleepsLonger(long now, long nanos) {
        return nanos <= 0 || (nanos != SlotStrategy.NOTHING_WAITS && !(timed && wakeNanos - now <= nanos));
    }

    /** Wakes the thread if it sleeps, or starts it if there is none. */
    void wake() {
        if (sleeping) {
            wakeSleeping();
        } else if (mayStart()) {
            starting = true;
            lock.later(requireNonNull(starter));
        }
    }

    void wakeSleeping() {
        if (sleeping) {
            sleeping = false;
            lock.wake(thread);
        }
    }

    /** Wakes the thread that waits to remove the instance. */
    void wakeAlways() {
        lock.wake(thread);
    }

    /** Sleeps until the thread is woken, without a mark that it sleeps. */
    void sleepUnmarked() {
        lock.sleep(this);
    }

    /**
     * Sleeps until the thread is woken, or until a time.
     *
     * @param nanos the longest sleep; {@link SlotStrategy#NOTHING_WAITS} for no limit
     */
    void sleep(long now, long nanos) {
        sleeping = true;
        sleptNanos = now;
        timed = nanos != SlotStrategy.NOTHING_WAITS;
        if (!timed) {
            lock.sleep(this);
        } else if (nanos > 0) {
            wakeNanos = now + nanos;
            lock.sleep(this, nanos);
        }
        sleeping = false;
    }
}
