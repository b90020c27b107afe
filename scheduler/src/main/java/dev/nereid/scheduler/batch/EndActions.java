package dev.nereid.scheduler.batch;

import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The actions after the end of one deferred execution. Lock-free; safe for use by any thread.
 *
 * <p>An action is added before the end and runs then, or after it and runs at once.
 */
final class EndActions {
    /** Takes the place of the actions after the end. */
    private static final class Ended implements Runnable {
        @Override
        public void run() {}
    }

    /** The actions so far in one; {@code null} for none, {@link Ended} after the end. */
    private final AtomicReference<@Nullable Runnable> actions = new AtomicReference<>();

    /** Adds an action, or runs it if the execution has ended. */
    void add(Runnable action) {
        boolean added = false;
        while (!added) {
            Runnable before = actions.get();
            if (before instanceof Ended) {
                action.run();
                return;
            }
            added = actions.compareAndSet(before, before == null ? action : () -> runBoth(before, action));
        }
    }

    private static void runBoth(Runnable first, Runnable second) {
        try {
            first.run();
        } finally {
            second.run();
        }
    }

    /** Runs all actions, in the order in which they were added. Called once. */
    void run() {
        Runnable added = actions.getAndSet(new Ended());
        if (added != null) {
            added.run();
        }
    }
}
