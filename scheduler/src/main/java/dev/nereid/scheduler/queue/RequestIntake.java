package dev.nereid.scheduler.queue;

import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Accepts the requests of one model or ensemble. Safe for use by any thread; no method calls a backend, an observer or
 * other foreign code under a lock.
 */
public interface RequestIntake {
    /**
     * Adds a request, if it may still be executed.
     *
     * @param mayRun whether the caller runs an idle instance if there is a batch for it
     * @return the handle of that instance with its batch, to be run by the caller at once; or else the outcome for the
     *     request
     */
    OfferResult offer(ScheduledRequest request, boolean mayRun);

    /**
     * Adds requests together, as {@link #offer} does.
     *
     * @param mayRun whether the caller runs an idle instance if there is a batch for it
     * @param outcomes receives the outcome for each request; nothing if all are passed to the instance at once
     * @return the handle of that instance with its batch, to be run by the caller; {@code null} if it runs none
     */
    @Nullable
    InstanceHandle offerAll(List<ScheduledRequest> offered, boolean mayRun, List<OfferResult> outcomes);

    boolean isOpen();

    /** Returns whether new requests are refused, since it was stopped. */
    boolean isStopped();
}
