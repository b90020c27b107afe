package dev.nereid.scheduler.instance;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Starts a thread once, unless the start was cancelled before. Safe for use by any thread.
 *
 * <p>It is new until its thread is started, or its start cancelled: one atomic step under its lock, which is held while
 * the thread starts. So {@link #cancel} returns only when it is certain whether there is a thread. After a failed start
 * it is new again.
 */
final class LateThread {
    private final Supplier<Thread> factory;
    private final Consumer<Thread> starter;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private boolean cancelled;

    /** The thread once it is started; written under the lock, read by any thread. */
    private volatile @Nullable Thread thread;

    /**
     * Creates a new one without a thread.
     *
     * @param factory creates a thread for each attempt to start it
     * @param starter starts it, or throws if it cannot
     */
    LateThread(Supplier<Thread> factory, Consumer<Thread> starter) {
        this.factory = factory;
        this.starter = starter;
    }

    /**
     * Starts the thread, unless it is started or its start was cancelled. What the starter throws is passed on; a later
     * call tries again.
     *
     * @return whether this call started it
     */
    boolean start() {
        lock.lock();
        try {
            if (cancelled || thread != null) {
                return false;
            }
            Thread created = factory.get();
            starter.accept(created);
            thread = created;
            return true;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Cancels the start, unless the thread is started.
     *
     * @return whether no thread was started, nor ever will be
     */
    boolean cancel() {
        lock.lock();
        try {
            cancelled |= thread == null;
            return cancelled;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the thread, which may have ended; {@code null} if none was started. */
    @Nullable
    Thread thread() {
        return thread;
    }
}
