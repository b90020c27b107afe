package dev.nereid.scheduler.ensemble;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.LinkedHashSet;
import java.util.Set;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Limits the requests in flight to one step, of all requests to the ensemble. Guarded by its own lock; calls nothing
 * under it.
 *
 * <p>Steps over the limit wait in the order of their arrival. No thread waits. A step that is granted may end at once and
 * grant the next: {@link Trampoline} keeps the stack from growing with their number.
 */
final class InflightLimit {
    /** A request to a step that may have to wait. An interface, since steps depend on this class. */
    interface Waiter {
        /** Called when it is counted as in flight. */
        void granted();
    }

    private final int max;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private int inFlight;

    @GuardedBy("lock")
    private final Set<Waiter> waiting = new LinkedHashSet<>();

    InflightLimit(int max) {
        this.max = max;
    }

    /**
     * Counts a request as in flight, or adds it to the waiting ones. A waiting request gets {@link Waiter#granted} when
     * it is counted, unless it {@linkplain #leave leaves} before.
     *
     * @return whether it is counted; it has to be {@linkplain #release released}
     */
    boolean acquire(Waiter step) {
        lock.lock();
        try {
            if (inFlight < max) {
                inFlight++;
                return true;
            }
            waiting.add(step);
            return false;
        } finally {
            lock.unlock();
        }
    }

    /** Ends the wait of a step; returns {@code false} if it is counted by now. */
    boolean leave(Waiter step) {
        lock.lock();
        try {
            return waiting.remove(step);
        } finally {
            lock.unlock();
        }
    }

    /** Ends the count of a step as in flight. The next one takes its place. */
    void release() {
        Waiter next = takeOver();
        if (next != null) {
            Trampoline.current().add(next);
        }
    }

    private @Nullable Waiter takeOver() {
        lock.lock();
        try {
            if (waiting.isEmpty()) {
                inFlight--;
                return null;
            }
            Waiter next = waiting.iterator().next();
            waiting.remove(next);
            return next;
        } finally {
            lock.unlock();
        }
    }

    /**
     * A trampoline: notifies the steps that one thread grants, one after the other. Confined to that thread.
     *
     * <p>A grant on the stack of another grant waits until the other has returned.
     */
    private static final class Trampoline {
        private static final ThreadLocal<Trampoline> CURRENT = ThreadLocal.withInitial(Trampoline::new);

        private final Deque<Waiter> granted = new ArrayDeque<>();
        private boolean running;

        private Trampoline() {}

        /** Returns the grants of the calling thread. */
        static Trampoline current() {
            return CURRENT.get();
        }

        /** Notifies a step now, or after the one that the thread notifies. */
        void add(Waiter step) {
            granted.add(step);
            if (running) {
                return;
            }
            running = true;
            try {
                for (Waiter next = granted.poll(); next != null; next = granted.poll()) {
                    next.granted();
                }
            } finally {
                running = false;
            }
        }
    }
}
