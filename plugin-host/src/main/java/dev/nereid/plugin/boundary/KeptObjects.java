package dev.nereid.plugin.boundary;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.locks.ReentrantLock;

/**
 * The objects that a plugin keeps during one load of a model version. Safe for use by any thread.
 *
 * <p>An object leaves once: it is taken, or the close of the holder closes it. Objects are closed outside the lock.
 */
public final class KeptObjects implements AutoCloseable {
    private final PluginBoundary boundary;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private final List<AutoCloseable> objects = new ArrayList<>();

    @GuardedBy("lock")
    private boolean ended;

    /** Creates a holder without objects, which closes objects through the boundary. */
    public KeptObjects(PluginBoundary boundary) {
        this.boundary = boundary;
    }

    /**
     * Keeps an object.
     *
     * @param object the object, owned by this holder from now on
     * @throws IllegalStateException if the holder is closed; the caller owns the object then
     */
    public void keep(AutoCloseable object) {
        lock.lock();
        try {
            if (ended) {
                throw new IllegalStateException(
                        "keep: the load has ended (expected: a call in Backend.complete, Backend.load or"
                                + " Model.newInstance)");
            }
            objects.add(object);
        } finally {
            lock.unlock();
        }
    }

    /** Takes the first object of a type, which the caller then owns; empty if there is none. */
    public <T> Optional<T> take(Class<T> type) {
        lock.lock();
        try {
            for (Iterator<AutoCloseable> all = objects.iterator(); all.hasNext(); ) {
                AutoCloseable object = all.next();
                if (type.isInstance(object)) {
                    all.remove();
                    return Optional.of(type.cast(object));
                }
            }
            return Optional.empty();
        } finally {
            lock.unlock();
        }
    }

    /** Closes the objects that were not taken, the last one first. Blocks; exceptions of their close are logged. */
    @Override
    public void close() {
        List<AutoCloseable> left;
        lock.lock();
        try {
            ended = true;
            left = List.copyOf(objects);
            objects.clear();
        } finally {
            lock.unlock();
        }
        for (AutoCloseable object : left.reversed()) {
            boundary.close("close of an object that was kept", () -> close(object));
        }
    }

    private static void close(AutoCloseable object) {
        try {
            object.close();
        } catch (RuntimeException e) {
            throw e;
        } catch (Exception e) {
            if (e instanceof InterruptedException) {
                Thread.currentThread().interrupt();
            }
            throw new IllegalStateException(e);
        }
    }
}
