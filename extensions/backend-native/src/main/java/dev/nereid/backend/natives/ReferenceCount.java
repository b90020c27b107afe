package dev.nereid.backend.natives;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Reference count of a native object: releases it when closed and no longer referenced. Guarded.
 *
 * <p>Owner threads: any. A user {@linkplain #retain() retains} before it uses the object and releases afterwards; after
 * {@link #close()} the object cannot be retained any more. The last holder, the owner or a user, runs the release on
 * its own thread and outside the lock, so exactly once and never while the object is in use.
 */
public final class ReferenceCount {
    private final ReentrantLock lock = new ReentrantLock();
    private final String name;
    private final Runnable release;

    @GuardedBy("lock")
    private long references;

    @GuardedBy("lock")
    private boolean closed;

    /**
     * Creates the lifetime of a living object, with its name for messages.
     *
     * @param release frees it, once, on the thread of the last holder; must not throw
     */
    public ReferenceCount(String name, Runnable release) {
        this.name = name;
        this.release = release;
    }

    /** Keeps the object alive until {@link #release()}; throws {@link IllegalStateException} if it was closed. */
    public void retain() {
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

    /** Adds a reference to another, also after the close; throws {@link IllegalStateException} if there is no other. */
    public void retainAgain() {
        lock.lock();
        try {
            if (references == 0) {
                throw new IllegalStateException(name + ": retained again without a reference");
            }
            references++;
        } finally {
            lock.unlock();
        }
    }

    /** Releases a reference, and a closed object with the last; throws {@link IllegalStateException} without any. */
    public void release() {
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

    /** Refuses further references; the object is released now or by its last user. Further calls do nothing. */
    public void close() {
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
