package dev.nereid.server.client;

import dev.nereid.api.ResponseFlow;
import dev.nereid.spi.ModelResponseObserver;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The flow of responses to an observer of a backend. It is open if the observer fails to say so.
 *
 * @param observer says whether it takes responses
 */
record ObserverFlow(ModelResponseObserver observer) implements ResponseFlow {
    private static final Logger LOG = LoggerFactory.getLogger(ObserverFlow.class);

    @Override
    public boolean isOpen() {
        try {
            return observer.isReady();
        } catch (RuntimeException e) {
            LOG.atError().setCause(e).log("observer of a model's request failed in isReady");
            return true;
        }
    }

    @Override
    public void whenOpen(Runnable action) {
        try {
            observer.onReady(action);
        } catch (RuntimeException e) {
            LOG.atError().setCause(e).log("observer of a model's request failed in onReady");
            action.run();
        }
    }
}
