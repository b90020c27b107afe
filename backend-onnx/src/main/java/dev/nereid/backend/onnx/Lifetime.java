package dev.nereid.backend.onnx;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Decides when a native object is released: once its owner has closed it and its last user is gone. Guarded.
 *
 * <p>Owner threads: any. A user {@linkplain #acquire() acquires} before it touches the object and releases afterwards;
 * from {@link #close()} on nobody can acquire any more. Whoever leaves last, the owner or a user, runs the release on
 * its own thread and outside the lock, so exactly once and never while somebody is inside.
 */
final class Lifetime {
    private final ReentrantLock lock = new ReentrantLock();
    private final String name;
    private final Runnable release;

    @GuardedBy("lock")
    private long users;

    @GuardedBy("lock")
    private boolean closed;

    /**
     * Creates the lifetime of a living object.
     *
     * @param name what it is, for messages
     * @param release frees it; must not throw
     */
    Lifetime(String name, Runnable release) {
        this.name = name;
        this.release = release;
    }

    /**
     * Keeps the object alive until {@link #release()}.
     *
     * @throws IllegalStateException if it was closed
     */
    void acquire() {
        lock.lock();
        try {
            if (closed) {
                throw new IllegalStateException(name + ": closed (expected: open)");
            }
            users++;
        } finally {
            lock.unlock();
        }
    }

    /** Keeps the object alive on behalf of somebody who already does; so it succeeds after {@link #close()} too. */
    void share() {
        lock.lock();
        try {
            if (users == 0) {
                throw new IllegalStateException(name + ": shared by nobody who uses it");
            }
            users++;
        } finally {
            lock.unlock();
        }
    }

    /** Ends what one {@link #acquire()} or {@link #share()} began. */
    void release() {
        boolean last;
        lock.lock();
        try {
            if (users == 0) {
                throw new IllegalStateException(name + ": released more often than acquired");
            }
            users--;
            last = closed && users == 0;
        } finally {
            lock.unlock();
        }
        if (last) {
            release.run();
        }
    }

    /** Lets nobody acquire from now on; the object is released now or by its last user. Further calls do nothing. */
    void close() {
        boolean last;
        lock.lock();
        try {
            last = !closed && users == 0;
            closed = true;
        } finally {
            lock.unlock();
        }
        if (last) {
            release.run();
        }
    }
}
