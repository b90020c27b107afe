package dev.nereid.scheduler;

import dev.nereid.api.Cancellation;
import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.ResponseObserver;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.scheduler.statistics.MeterReading;
import dev.nereid.spi.Sequence;
import java.util.Optional;
import java.util.concurrent.CompletionStage;

/**
 * Executes the requests to one model version. Safe for use by any thread.
 *
 * <p>A scheduler is open, then draining, then closed: {@link #drain} refuses new requests and executes the accepted
 * ones, {@link #close} waits for their end. Every accepted request completes, whatever happens: executed, failed,
 * cancelled, or {@linkplain #abandon abandoned}.
 *
 * <p>How requests are executed is up to the implementation: {@link ModelScheduler} runs instances of one model.
 * {@link #instances} has the methods for instances alone.
 */
public interface Scheduler extends AutoCloseable {
    /**
     * Submits a request that was checked against the model, and takes ownership of its memory. Never blocks, and
     * reports every outcome to the observer. Returns the handle that cancels the request.
     */
    Cancellation submit(CheckedRequest request, ResponseObserver observer);

    /** Returns the control of the instances that execute the requests, always the same; empty if there are none. */
    Optional<InstanceControl> instances();

    /** Returns the {@link dev.nereid.api.InferResponse#source} of the responses, different for every scheduler. */
    Object source();

    /** Returns the number of open responses and leases on their outputs, which may have changed by the return. */
    long openResponses();

    /** Returns whether requests may be completed from the response cache. */
    boolean isCached();

    /** Returns a snapshot of the statistics of the requests. */
    MeterReading statistics();

    /**
     * Returns whether the model leaves the server ready: requests are accepted and nothing keeps them from being
     * executed, by the last checks of instances; one that is unavailable for a while counts as ready. Never blocks.
     */
    boolean isReady();

    /** Checks whether the model can serve. Never blocks; completes within seconds, on any thread. */
    CompletionStage<Readiness> checkReady();

    /** Returns whether requests are accepted: until it drains, unless no request could ever be executed. */
    boolean isServing();

    /** Describes the reasons that keep requests from being executed; empty if there are none. */
    String problems();

    /** Returns the number of requests in flight: waiting, in execution, or with open responses. */
    int inFlight();

    /** Returns whether no request is in flight and no sequence is live, so that an unload would lose nothing. */
    default boolean isIdle() {
        return inFlight() == 0;
    }

    /**
     * Returns whether any request is not completed. A request that moves between threads at this moment may be missed.
     *
     * @return whether requests wait or are executed; the others in flight are completed, and their memory is in use
     */
    default boolean isWorking() {
        return inFlight() > 0;
    }

    int waiting();

    /** Returns whether a sequence lives here: further requests of it may come. Never for a model without sequences. */
    default boolean hasSequence(Sequence.Id id) {
        return false;
    }

    /**
     * Runs an action when no sequence lives here any more, so that an end of the model interrupts none. Called once.
     *
     * @param action runs once, on any thread; short, never blocks
     * @return {@code false} if none lives now, and the action does not run
     */
    default boolean whenSequencesEnd(Runnable action) {
        return false;
    }

    /** Ends a sequence after its requests that wait, if it lives: it starts again elsewhere. Never blocks. */
    default void replaceSequence(Sequence.Id id) {}

    /**
     * Counts a request that its client cancelled before it was submitted, and ends its sequence as {@link
     * #cancelSequence} does. Never blocks.
     */
    void cancelled(RequestOptions options, long arrivedNanos);

    /**
     * Ends the sequence of a request that is never submitted, after the requests that wait, if it lives: later requests
     * would execute after a gap. Has no effect on iterative sequences. Never blocks.
     */
    default void cancelSequence(RequestOptions options) {}

    /**
     * Refuses requests that wait while no instance is available, from now on: the version is to be unloaded, and would wait
     * for them. Never blocks.
     */
    default void expectUnload() {}

    /**
     * Refuses requests from now on, with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}. Accepted requests are executed,
     * without further delay, or refused if no instance is available. Never blocks.
     */
    void drain();

    /**
     * Waits for at most {@code nanos}, on a control thread, until no request is in flight; returns whether none is.
     * More may come, unless it {@linkplain #drain drains}.
     */
    boolean awaitIdle(long nanos) throws InterruptedException;

    /**
     * Completes all requests without waiting for their executions, and refuses later ones. Waiting requests are
     * refused. Requests in execution are cancelled and then complete with {@link dev.nereid.spi.ErrorCode#UNAVAILABLE}.
     * Waits only for cancel actions of backends, and for observers.
     */
    void abandon();

    /**
     * Drains, waits until no request is in flight, and frees everything. Blocks: called on a control thread, never by a
     * backend or an observer. Further invocations wait for the first.
     */
    @Override
    void close();
}
