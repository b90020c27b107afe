package dev.nereid.scheduler.ensemble;

import dev.nereid.api.RequestOptions;
import dev.nereid.scheduler.queue.InstanceHandle;
import dev.nereid.scheduler.queue.OfferResult;
import dev.nereid.scheduler.queue.RequestIntake;
import dev.nereid.scheduler.request.ScheduledRequest;
import java.util.List;
import org.jspecify.annotations.Nullable;

/**
 * Begins requests to an ensemble at once: it has no queue and no instances. Lock-free; safe for use by any thread.
 *
 * <p>A stop refuses requests from then on; begun requests go on.
 */
public final class EnsembleIntake implements RequestIntake {
    private final EnsembleScope scope;
    private volatile boolean stopped;

    public EnsembleIntake(EnsembleScope scope) {
        this.scope = scope;
    }

    @Override
    public OfferResult offer(ScheduledRequest request, boolean mayRun) {
        if (stopped) {
            return OfferResult.Outcome.STOPPED;
        }
        try {
            EnsembleRun.begin(scope, request);
        } catch (RuntimeException e) { // of the observer; requests behind it are offered all the same
            request.failUnqueued(e);
        }
        return OfferResult.Outcome.ACCEPTED;
    }

    @Override
    public @Nullable InstanceHandle offerAll(
            List<ScheduledRequest> offered, boolean mayRun, List<OfferResult> outcomes) {
        for (int i = 0; i < offered.size(); i++) {
            outcomes.add(offer(offered.get(i), false));
        }
        return null;
    }

    /** Ends the sequence of a request that is never offered on the models of all steps. */
    public void cancelSequence(RequestOptions options) {
        EnsembleRun.cancelSequence(scope, options, null);
    }

    public void stop() {
        stopped = true;
    }

    @Override
    public boolean isOpen() {
        return !stopped;
    }

    @Override
    public boolean isStopped() {
        return stopped;
    }
}
