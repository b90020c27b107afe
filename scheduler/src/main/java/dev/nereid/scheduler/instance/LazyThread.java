package dev.nereid.scheduler.instance;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.Consumer;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;

/**
 * Starts a thread on demand, unless cancelled, and again after its end. Safe for use by any thread.
 *
 * <p>It is new until its thread is started, or its start cancelled: one atomic step under its lock, which is held while
 * the thread starts. So {@link #cancel} returns only when it is certain whether there is a thread. After a failed
 * start, and after {@link #leave}, it is new again. The thread may end while it is not needed. There is one thread at
 * most.
 */
final class LazyThread {
    private final Supplier<Thread> factory;
    private final Consumer<Thread> starter;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private boolean cancelled;

    /** {@code true} if a start was requested while the thread existed and was about to leave. */
    @GuardedBy("lock")
    private boolean again;

    /** The thread while it exists; written under the lock, read by any thread. */
    private volatile @Nullable Thread thread;

    /**
     * Creates a new one without a thread.
     *
     * @param factory creates a thread for each attempt to start it
     * @param starter starts it, or throws if it cannot
     */
    LazyThread(Supplier<Thread> factory, Consumer<Thread> starter) {
        this.factory = factory;
        this.starter = starter;
    }

    /**
     * Starts the thread, or keeps one that is about to {@link #leave}. Throws the failure of the starter; a later call
     * tries again.
     *
     * @return {@code false} if there is and will be no thread, since the start was cancelled
     */
    boolean start() {
        lock.lock();
        try {
            if (thread != null) {
                again = true;
                return true;
            }
            if (cancelled) {
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
     * Permits the calling thread, which is the started one, to end. A later start creates another thread.
     *
     * @return {@code false} if the thread is needed: a start was requested meanwhile, or the start was cancelled, so
     *     that the caller of {@link #cancel} relies on it
     */
    boolean leave() {
        lock.lock();
        try {
            boolean stays = again || cancelled;
            again = false;
            if (!stays) {
                thread = null;
            }
            return !stays;
        } finally {
            lock.unlock();
        }
    }

    /**
     * Cancels the start of a thread from now on. An existing thread does not {@link #leave} any more.
     *
     * @return whether there is no thread, and never will be
     */
    boolean cancel() {
        lock.lock();
        try {
            cancelled = true;
            return thread == null;
        } finally {
            lock.unlock();
        }
    }

    /** Returns the thread, which may have ended; {@code null} if there is none. */
    @Nullable
    Thread thread() {
        return thread;
    }
}
