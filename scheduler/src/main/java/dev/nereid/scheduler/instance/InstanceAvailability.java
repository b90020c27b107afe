package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.memory.StackReserve;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Records whether an instance takes batches, according to its backend. Lock-free; safe for use by any thread.
 *
 * <p>A change is written before its listener is read, and a new listener is written before the state is read: so the
 * listener runs after each change, and reads the state itself. Of two changes at a time, the one that it sees last
 * counts.
 */
public final class InstanceAvailability {
    /** A reason why the instance cannot serve; if it {@code takes} batches, it fails them. */
    private record Problem(String reason, boolean takes) {
        Problem {
            requireNonNull(reason, "reason");
        }
    }

    private final AtomicReference<@Nullable Problem> problem = new AtomicReference<>();

    private volatile Runnable listener = InstanceAvailability::ignore;

    /** Keeps batches from the instance for a reason, which replaces an earlier one. Does not wait. */
    public void unavailable(String why) {
        set(new Problem(why, false));
    }

    /** Marks the instance as failing for a reason, which replaces an earlier one: it fails batches. Does not wait. */
    public void failing(String why) {
        set(new Problem(why, true));
    }

    /** Marks the instance as available: it takes batches again. Does not wait. */
    public void available() {
        set(null);
    }

    private void set(@Nullable Problem next) {
        StackReserve.require(); // of the backend
        if (takes(problem.getAndSet(next)) != takes(next)) {
            listener.run();
        }
    }

    private static boolean takes(@Nullable Problem state) {
        return state == null || state.takes();
    }

    /** Returns why it cannot serve; empty if it can. */
    Optional<String> reason() {
        return Optional.ofNullable(problem.get()).map(Problem::reason);
    }

    boolean isAvailable() {
        return takes(problem.get());
    }

    /** Runs an action now and after each change, on any thread. It must not wait. */
    void onChange(Runnable action) {
        listener = action;
        action.run();
    }

    /** Ends the notification: the instance is closed. */
    void end() {
        listener = InstanceAvailability::ignore;
    }

    private static void ignore() {}
}
