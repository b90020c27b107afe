package dev.nereid.server.demand;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferRequest;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;

/** Submits or refuses requests that have waited for their models. Safe for use by any thread; never blocks. */
public interface Submission {
    /**
     * Submits a request to a model that is loaded now. Owns its memory from now on, and notifies the observer of every
     * outcome.
     *
     * @param arrivedNanos when the server received it
     * @return the handle by which the caller cancels the request
     */
    Cancellation submit(InferRequest request, ResponseObserver observer, long arrivedNanos);

    /**
     * Records a request that its client cancelled before its turn came, and that is never submitted. It counts, and
     * its sequence ends after the requests that wait.
     *
     * @param request the request; its memory is released
     * @param arrivedNanos when the server received it
     */
    void cancelled(InferRequest request, long arrivedNanos);

    /** Refuses a request, notifies its observer, and releases its memory. */
    void refuse(InferRequest request, ResponseObserver observer, InferenceException reason);
}
