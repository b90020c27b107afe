package dev.nereid.scheduler.ensemble;

import dev.nereid.api.ResponseFlow;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * The flow of the decoupled steps of one request: open while its client reads and later steps keep up. Lock-free; safe
 * for use by any thread.
 *
 * <p>No wake-up is lost: a step sets its action and then reads whether the flow is open; who opens it does so and then
 * reads the actions. Only {@link #check} registers with the flow of the client.
 */
final class EnsembleFlow {
    private final ResponseFlow client;
    private final List<StepFlow> steps = new CopyOnWriteArrayList<>();
    private volatile boolean congested;
    private volatile boolean ended;

    /** Creates the flow of a request. */
    EnsembleFlow(ResponseFlow client) {
        this.client = client;
    }

    /** Creates the flow of a step. */
    ResponseFlow ofStep() {
        StepFlow flow = new StepFlow();
        steps.add(flow);
        return flow;
    }

    /** Ends the flow of a step. */
    void remove(ResponseFlow flow) {
        steps.remove(flow);
    }

    /** Sets whether later steps are behind. */
    void setCongested(boolean changed) {
        if (congested != changed) {
            congested = changed;
            check();
        }
    }

    /** Opens the flow for ever, since no response is waited for. */
    void end() {
        ended = true;
        check();
    }

    private boolean isOpen() {
        return ended || (!congested && client.isOpen());
    }

    private void check() {
        if (isOpen()) {
            steps.forEach(StepFlow::run);
        } else if (!congested) {
            client.whenOpen(this::check);
        }
    }

    /** The flow of one step. */
    private final class StepFlow implements ResponseFlow {
        private final AtomicReference<@Nullable Runnable> waiting = new AtomicReference<>();

        @Override
        public boolean isOpen() {
            return EnsembleFlow.this.isOpen();
        }

        @Override
        public void whenOpen(Runnable action) {
            waiting.set(action);
            check();
        }

        void run() {
            Runnable action = waiting.getAndSet(null);
            if (action != null) {
                action.run();
            }
        }
    }
}
