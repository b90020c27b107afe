package dev.nereid.api;

import dev.nereid.spi.ErrorCode;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import org.jspecify.annotations.Nullable;

/**
 * Receives the one response to a request. Calls of the server come one at a time; the receiver waits on any thread.
 *
 * <p>The outcome is complete once: with a response, which its receiver closes, with an error, or cancelled by an
 * interrupted receiver; a response that comes then is closed here.
 */
final class SingleResponse implements ResponseObserver {
    private final ModelRef model;
    private final CompletableFuture<InferResponse> outcome = new CompletableFuture<>();
    private volatile @Nullable Cancellation sent;
    private volatile boolean isOneOfSeveral;
    private @Nullable InferResponse response;

    /** Creates the receiver for a request to a model. */
    SingleResponse(ModelRef model) {
        this.model = model;
    }

    /** Returns what completes with the response. */
    CompletableFuture<InferResponse> outcome() {
        return outcome;
    }

    /** Takes the request as sent. It may have responded before. */
    void onSent(Cancellation request) {
        sent = request;
        if (isOneOfSeveral) {
            request.cancel();
        }
    }

    /** Waits for the response. Cancels the request if the thread is interrupted meanwhile. */
    InferResponse await() throws InterruptedException {
        try {
            return outcome.get();
        } catch (ExecutionException e) {
            throw e.getCause() instanceof InferenceException failure
                    ? failure
                    : new InferenceException(ErrorCode.INTERNAL, "internal error: " + e.getCause());
        } catch (InterruptedException e) {
            abandon();
            throw e;
        }
    }

    private void abandon() {
        if (outcome.cancel(false)) {
            cancelRequest();
        } else if (!outcome.isCompletedExceptionally()) {
            outcome.join().close();
        }
    }

    private void cancelRequest() {
        Cancellation request = sent;
        if (request != null) {
            request.cancel();
        }
    }

    @Override
    public void onResponse(InferResponse received) {
        if (response != null) {
            received.close();
            isOneOfSeveral = true;
            cancelRequest();
        } else {
            response = received;
        }
        if (received.isFinal()) {
            onCompleted();
        }
    }

    @Override
    public void onCompleted() {
        InferResponse received = response;
        if (received == null || isOneOfSeveral) {
            fail(new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "model " + model + ": " + (isOneOfSeveral ? "several responses" : "no response")
                            + " (expected: one; infer with an observer for a decoupled model)"));
        } else if (!outcome.complete(received)) {
            received.close();
        }
    }

    @Override
    public void onError(InferenceException error) {
        if (isOneOfSeveral) {
            onCompleted();
        } else {
            fail(error);
        }
    }

    private void fail(InferenceException error) {
        InferResponse received = response;
        if (received != null) {
            received.close();
        }
        outcome.completeExceptionally(error);
    }
}
