package dev.nereid.server.client;

import dev.nereid.api.ResponseFlow;
import dev.nereid.spi.ModelResponseObserver;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The flow of responses to an observer of a backend. It is open if the observer fails to say so, and after the end.
 *
 * @param observer returns the observer; {@code null} after the end, since the observer may refer to responses, and a
 *     request in flight to this flow
 */
record ObserverFlow(Supplier<@Nullable ModelResponseObserver> observer) implements ResponseFlow {
    private static final Logger LOG = LoggerFactory.getLogger(ObserverFlow.class);

    @Override
    public boolean isOpen() {
        try {
            ModelResponseObserver receiving = observer.get();
            return receiving == null || receiving.isReady();
        } catch (RuntimeException e) {
            LOG.atError().setCause(e).log("observer of a model's request failed in isReady");
            return true;
        }
    }

    @Override
    public void whenOpen(Runnable action) {
        ModelResponseObserver receiving = observer.get();
        if (receiving == null) {
            action.run();
            return;
        }
        try {
            receiving.onReady(action);
        } catch (RuntimeException e) {
            LOG.atError().setCause(e).log("observer of a model's request failed in onReady");
            action.run();
        }
    }
}
