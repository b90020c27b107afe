package dev.nereid.scheduler.ensemble;

import dev.nereid.api.Cancellation;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelCatalog.Readiness;
import dev.nereid.api.RequestOptions;
import dev.nereid.api.call.CallChain;
import dev.nereid.scheduler.request.CheckedRequest;
import dev.nereid.spi.ErrorCode;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Finds the models of the steps of one ensemble. Safe for use by any thread; never blocks. */
public interface StepModels {
    /** Receives the models for one request. Exactly one method is called, once, on any thread. */
    interface Receiver {
        /**
         * Receives the models.
         *
         * @param models the models of all steps, to be closed by the receiver
         */
        void acquired(Pinned models);

        /** Receives the reason why a model cannot be used. */
        void failed(InferenceException error);
    }

    /**
     * Acquires the models of all steps for one request; loads them if they are loaded on demand.
     *
     * @param receiver receives the models, before or after this returns
     * @return the handle that ends the wait for a load; the receiver is called in any case
     */
    Cancellation acquire(CheckedRequest request, Receiver receiver);

    /**
     * Returns the model versions that wait for the requests of the steps, the outermost first.
     *
     * @return the versions that wait for the request, and the ensemble behind them
     */
    CallChain callers(CheckedRequest request);

    /**
     * Ends the sequence of a request on the model of a step to which the request is never submitted: its client cancelled
     * it, and later requests would execute after a gap.
     *
     * @param options the options of the request to the ensemble, with a sequence
     */
    default void cancelSequence(int step, RequestOptions options) {}

    /**
     * Describes the reasons that keep steps from being executed. Never blocks.
     *
     * @return the names of models that are not ready; empty if all are
     */
    String problems();

    /**
     * Checks whether the models of all steps can serve. Never blocks.
     *
     * @return completes within seconds, on any thread
     */
    default CompletionStage<Readiness> checkReady() {
        String problems = problems();
        return CompletableFuture.completedStage(
                problems.isEmpty() ? Readiness.READY : Readiness.notReady(ErrorCode.UNAVAILABLE, problems));
    }

    /** The models of all steps, kept loaded for one request. Safe for use by any thread. */
    interface Pinned extends AutoCloseable {
        /**
         * Returns the model of a step.
         *
         * @return the model, which may be used until the close
         */
        StepModel model(int step);

        /**
         * Returns the identity of the content of all models, as the key of a cached response contains it.
         *
         * @return empty if the identity is not known
         */
        default Optional<String> identity() {
            return Optional.empty();
        }

        /** Ends the use of the models. Called once, when no request to them is in flight. Never blocks. */
        @Override
        void close();
    }
}
