package dev.nereid.scheduler.ensemble;

import dev.nereid.api.ResponseFlow;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicReference;
import org.jspecify.annotations.Nullable;

/**
 * Opens and closes the flow of the decoupled steps of one request. Open while the client reads and later steps keep up.
 * Lock-free; safe for use by any thread.
 *
 * <p>No wake-up is lost: a step sets its action and then reads whether the flow is open; a thread opens the flow and
 * then reads the actions. Only {@link #check} registers with the flow of the client.
 */
final class EnsembleFlow {
    private final ResponseFlow client;
    private final List<StepFlow> steps = new CopyOnWriteArrayList<>();

    /** The responses that wait for the thread that handles the events of the request. */
    private final AtomicInteger unhandled = new AtomicInteger();

    private volatile boolean ended;

    EnsembleFlow(ResponseFlow client) {
        this.client = client;
    }

    ResponseFlow ofStep(Iteration iteration) {
        StepFlow flow = new StepFlow(iteration);
        steps.add(flow);
        return flow;
    }

    void remove(ResponseFlow flow) {
        steps.remove(flow);
    }

    /** Counts a response that waits until it is handled. Called by the thread that sends it. */
    void arrived() {
        unhandled.incrementAndGet();
    }

    /**
     * Subtracts handled responses, and decides which steps pause. Called by the thread that handles events.
     *
     * <p>The outermost step pauses while later steps are behind. An inner step must not: a later step may wait for its
     * iteration. It pauses for its own responses.
     *
     * @param responses the number of responses that were handled
     * @param behind whether later steps are behind
     * @param maxOwn the number of its own unfinished responses for which an inner step pauses
     */
    void handled(int responses, boolean behind, int maxOwn) {
        boolean changed = false;
        for (StepFlow step : steps) {
            changed |= step.setCongested(
                    step.iteration.depth() == 0
                            ? behind
                            : step.iteration.children().size() >= maxOwn);
        }
        // Only then, or a step would see an open flow that is about to be closed.
        changed |= responses > 0 && unhandled.addAndGet(-responses) == 0;
        if (changed) {
            check();
        }
    }

    /** Opens the flow for ever, since no response is waited for. */
    void end() {
        ended = true;
        check();
    }

    private void check() {
        boolean isClientAwaited = false;
        for (StepFlow step : steps) {
            if (step.isOpen()) {
                step.run();
            } else {
                isClientAwaited |= step.waiting.get() != null && step.keepsUp();
            }
        }
        if (isClientAwaited) {
            client.whenOpen(this::check);
        }
    }

    /** The flow of one step. */
    private final class StepFlow implements ResponseFlow {
        /** Its children are read by the thread that handles events alone. */
        private final Iteration iteration;

        private final AtomicReference<@Nullable Runnable> waiting = new AtomicReference<>();
        private volatile boolean congested;

        StepFlow(Iteration iteration) {
            this.iteration = iteration;
        }

        /** Sets whether it pauses; returns whether that changed. */
        boolean setCongested(boolean congests) {
            boolean changed = congested != congests;
            congested = congests;
            return changed;
        }

        /** Returns whether its responses were handled, and nothing but the client may make it wait. */
        boolean keepsUp() {
            return !congested && unhandled.get() == 0;
        }

        @Override
        public boolean isOpen() {
            return ended || (keepsUp() && client.isOpen());
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
