package dev.nereid.api.frontend;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.ResponseFlow;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.BooleanSupplier;
import org.jspecify.annotations.Nullable;

/**
 * A flow over a condition of its front end, which signals changes. Lock-free; safe for use by any thread.
 *
 * <p>No opening is missed: {@link #whenOpen} writes the action and then reads the condition, and the front end changes
 * the condition and then reads the action in {@link #check}. At least one sees the other. The thread that takes the
 * action runs it.
 */
public final class FlowSignal implements ResponseFlow {
    private final BooleanSupplier open;
    private final AtomicReference<@Nullable Runnable> action = new AtomicReference<>();

    /**
     * Creates a flow.
     *
     * @param open the condition; its changes are visible to all threads at once, and it stays true once the client is
     *     gone
     */
    public FlowSignal(BooleanSupplier open) {
        this.open = requireNonNull(open, "open");
    }

    @Override
    public boolean isOpen() {
        return open.getAsBoolean();
    }

    @Override
    public void whenOpen(Runnable action) {
        this.action.set(requireNonNull(action, "action"));
        check();
    }

    /** Runs the action if there is one and the flow is open. Called after each change that may have opened it. */
    public void check() {
        if (action.get() != null && open.getAsBoolean()) {
            Runnable taken = action.getAndSet(null);
            if (taken != null) {
                taken.run();
            }
        }
    }

    /**
     * Says whether an action waits.
     *
     * @return whether one was registered and has not run
     */
    public boolean isAwaited() {
        return action.get() != null;
    }
}
