package dev.nereid.scheduler;

import dev.nereid.api.Cancellation;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.ModelSettings;
import java.util.List;

/**
 * Queues the calls to one version of a model, batches them, and runs them on the version's instances. Safe for use by
 * any thread.
 */
public final class ModelScheduler implements AutoCloseable {
    private ModelScheduler() {}

    /**
     * Starts a scheduler with one platform thread for each instance, named
     * {@code instance/<model>/<version>/<instance name>}.
     *
     * @param settings the model's configuration
     * @param policy how requests are batched; a model without batch dimension executes them one by one in any case
     * @param instances at least one instance; owned and later closed by the scheduler, whatever happens
     * @param environment memory and clock
     * @return the scheduler, which takes calls at once
     */
    public static ModelScheduler start(
            ModelSettings settings,
            BatchingPolicy policy,
            List<InstanceSlot> instances,
            SchedulerEnvironment environment) {
        throw new UnsupportedOperationException("not built yet");
    }

    /**
     * Queues a call. Never blocks and never throws; every outcome is told to the observer.
     *
     * @param call a call that was checked against the model; its memory is the scheduler's from now on
     * @param observer who is told the responses
     * @return the handle by which the caller withdraws the call
     */
    public Cancellation submit(CheckedCall call, ResponseObserver observer) {
        throw new UnsupportedOperationException("not built yet");
    }

    /**
     * Says whether the model can serve. Never blocks.
     *
     * @return {@code true} while calls are taken and every instance says that it is ready
     */
    public boolean isReady() {
        throw new UnsupportedOperationException("not built yet");
    }

    /**
     * Counts the calls that were taken and did not end: those that wait, that are executed, or whose responses are not
     * all closed.
     *
     * @return the number at this moment
     */
    public int inFlight() {
        throw new UnsupportedOperationException("not built yet");
    }

    /**
     * Stops taking calls (later ones are answered {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}), executes what is queued,
     * waits until every call has ended and every response is closed, and then closes the instances. Blocks meanwhile:
     * to be called on a control thread, not on an instance's own. Later calls wait for the first and do nothing.
     */
    @Override
    public void close() {
        throw new UnsupportedOperationException("not built yet");
    }
}
