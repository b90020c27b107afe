package dev.nereid.backend.onnx.ort;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Reference count of a native object: releases it when closed and no longer referenced. Guarded.
 *
 * <p>Owner threads: any. A user {@linkplain #retain() acquires} before it touches the object and releases afterwards;
 * from {@link #close()} on nobody can acquire any more. Whoever leaves last, the owner or a user, runs the release on
 * its own thread and outside the lock, so exactly once and never while somebody is inside.
 */
final class ReferenceCount {
    private final ReentrantLock lock = new ReentrantLock();
    private final String name;
    private final Runnable release;

    @GuardedBy("lock")
    private long references;

    @GuardedBy("lock")
    private boolean closed;

    /**
     * Creates the lifetime of a living object.
     *
     * @param name what it is, for messages
     * @param release frees it; must not throw
     */
    ReferenceCount(String name, Runnable release) {
        this.name = name;
        this.release = release;
    }

    /**
     * Keeps the object alive until {@link #release()}.
     *
     * @throws IllegalStateException if it was closed
     */
    void retain() {
        lock.lock();
        try {
            if (closed) {
                throw new IllegalStateException(name + ": closed (expected: open)");
            }
            references++;
        } finally {
            lock.unlock();
        }
    }

    /** Keeps the object alive on behalf of somebody who already does; so it succeeds after {@link #close()} too. */
    void retainAgain() {
        lock.lock();
        try {
            if (references == 0) {
                throw new IllegalStateException(name + ": shared by nobody who uses it");
            }
            references++;
        } finally {
            lock.unlock();
        }
    }

    /** Ends what one {@link #retain()} or {@link #retainAgain()} began. */
    void release() {
        boolean last;
        lock.lock();
        try {
            if (references == 0) {
                throw new IllegalStateException(name + ": released more often than acquired");
            }
            references--;
            last = closed && references == 0;
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
            last = !closed && references == 0;
            closed = true;
        } finally {
            lock.unlock();
        }
        if (last) {
            release.run();
        }
    }
}
