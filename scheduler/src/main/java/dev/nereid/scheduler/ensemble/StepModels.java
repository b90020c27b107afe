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
        /** Receives the models of all steps, to be closed by the receiver. */
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

    /** Returns the model versions that wait for the request, the outermost first, and the ensemble behind them. */
    CallChain callers(CheckedRequest request);

    /**
     * Ends the sequence of a request on the model of a step to which the request is never submitted: its client
     * cancelled it, and later requests would execute after a gap.
     */
    default void cancelSequence(int step, RequestOptions options) {}

    /** Returns the names of models that are not ready, so that steps cannot execute; empty for none. Never blocks. */
    String problems();

    /** Checks whether the models of all steps can serve. Never blocks; completes within seconds, on any thread. */
    default CompletionStage<Readiness> checkReady() {
        String problems = problems();
        return CompletableFuture.completedStage(
                problems.isEmpty() ? Readiness.READY : Readiness.notReady(ErrorCode.UNAVAILABLE, problems));
    }

    /** The models of all steps, kept loaded for one request. Safe for use by any thread. */
    interface Pinned extends AutoCloseable {
        /** Returns the model of a step, which may be used until the close. */
        StepModel model(int step);

        /** Returns the identity of the content of all models, for keys of cached responses; empty if not known. */
        default Optional<String> identity() {
            return Optional.empty();
        }

        /** Ends the use of the models. Called once, when no request to them is in flight. Never blocks. */
        @Override
        void close();
    }
}
