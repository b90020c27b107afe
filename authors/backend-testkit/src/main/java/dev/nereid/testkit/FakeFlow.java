package dev.nereid.testkit;

import dev.nereid.api.ResponseFlow;
import dev.nereid.api.frontend.FlowSignal;

/** A {@link ResponseFlow} that a test opens and closes. Open at first. Safe for use by any thread. */
public final class FakeFlow implements ResponseFlow {
    private final FlowSignal signal = new FlowSignal(this::isOpen);
    private volatile boolean open = true;

    /** Creates an open flow. */
    public FakeFlow() {}

    /** Opens the flow, and runs the action that waits for that, on the calling thread. */
    public void open() {
        open = true;
        signal.check();
    }

    public void close() {
        open = false;
    }

    /**
     * Says whether an action waits.
     *
     * @return whether one was registered and has not run
     */
    public boolean isAwaited() {
        return signal.isAwaited();
    }

    @Override
    public boolean isOpen() {
        return open;
    }

    @Override
    public void whenOpen(Runnable action) {
        signal.whenOpen(action);
    }
}
