package dev.nereid.scheduler.ensemble;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.ModelSettings;

/** The model version that executes a step during one request. Safe for use by any thread. */
public interface StepModel {
    ModelSettings settings();

    /**
     * Returns whether inputs and outputs of the version have to lie on the host, for its instances or for a cache.
     *
     * @return {@code true} also for an ensemble, since one of its steps may need host memory
     */
    boolean needsHostTensors();

    /**
     * Submits a request. Never blocks or throws, and reports every outcome to the observer.
     *
     * @param request the request; its memory belongs to the model from now on
     * @return the handle that cancels the request
     */
    Cancellation submit(InferRequest request, ResponseObserver observer);
}
