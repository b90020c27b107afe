package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

import java.util.Optional;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Whether an instance takes batches, as its backend says. Lock-free; safe for use by any thread.
 *
 * <p>A change is written before its listener is read, and a new listener before the state is: so the listener runs after
 * each change, and reads the state itself. Of two changes at a time, the one that it sees last counts.
 */
public final class InstanceAvailability {
    /** Why it takes no batch; {@code null} if it does. */
    private final AtomicReference<@Nullable String> reason = new AtomicReference<>();

    private volatile Runnable listener = InstanceAvailability::ignore;

    /**
     * Keeps batches from the instance. Does not wait.
     *
     * @param why the reason, which replaces an earlier one
     */
    public void unavailable(String why) {
        if (reason.getAndSet(requireNonNull(why, "reason")) == null) {
            listener.run();
        }
    }

    /** Lets the instance take batches again. Does not wait. */
    public void available() {
        if (reason.getAndSet(null) != null) {
            listener.run();
        }
    }

    /** Returns why it takes no batch; empty if it does. */
    Optional<String> reason() {
        return Optional.ofNullable(reason.get());
    }

    /** Returns whether it takes batches. */
    boolean isAvailable() {
        return reason.get() == null;
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
