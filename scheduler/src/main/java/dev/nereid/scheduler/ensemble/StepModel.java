package dev.nereid.scheduler.ensemble;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.ModelSettings;

/** The model version that executes a step during one request. Safe for use by any thread. */
public interface StepModel {
    ModelSettings settings();

    /**
     * Returns whether inputs and outputs of the version have to lie on the host, for its instances or for a cache. True
     * for an ensemble, since one of its steps may need host memory.
     */
    boolean needsHostTensors();

    /**
     * Submits a request, takes over its memory, and returns its cancellation. Never blocks or throws, and reports every
     * outcome to the observer.
     */
    Cancellation submit(InferRequest request, ResponseObserver observer);
}
