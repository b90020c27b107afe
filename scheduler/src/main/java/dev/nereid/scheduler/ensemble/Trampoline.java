package dev.nereid.scheduler.ensemble;

import java.util.ArrayDeque;
import java.util.Deque;

/**
 * A trampoline: notifies the steps that one thread grants, one after the other. Confined to that thread.
 *
 * <p>A grant on the stack of another grant waits until the other has returned.
 */
final class Trampoline {
    private static final ThreadLocal<Trampoline> CURRENT = ThreadLocal.withInitial(Trampoline::new);

    private final Deque<InflightLimit.Waiter> granted = new ArrayDeque<>();
    private boolean running;

    private Trampoline() {}

    /** Returns the grants of the calling thread. */
    static Trampoline current() {
        return CURRENT.get();
    }

    /** Notifies a step now, or after the one that the thread notifies. */
    void add(InflightLimit.Waiter step) {
        granted.add(step);
        if (running) {
            return;
        }
        running = true;
        try {
            for (InflightLimit.Waiter next = granted.poll(); next != null; next = granted.poll()) {
                next.granted();
            }
        } finally {
            running = false;
        }
    }
}
