package dev.nereid.server.client;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelRequest;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.Executor;
import org.jspecify.annotations.Nullable;

/**
 * Receives the one response of a model that is not decoupled.
 *
 * <p>An action of the backend on the outcome may block for ever. So it does not run on the thread that delivers the
 * response, which is one of the other model.
 */
final class SingleResponse implements ModelResponseObserver {
    private final ModelRequest request;
    private final String model;
    private final Executor completion;
    private final CompletableFuture<ModelResponse> outcome = new CompletableFuture<>();
    private @Nullable ModelResponse response;
    private boolean isOneOfSeveral;

    /**
     * Creates the receiver for a request to a model.
     *
     * @param request cancelled by an interrupt of the waiting thread, and by a second response
     * @param model the name of the model
     * @param completion runs the completion of the outcome, and with it the actions of the backend on it
     */
    SingleResponse(ModelRequest request, String model, Executor completion) {
        this.request = request;
        this.model = model;
        this.completion = completion;
    }

    CompletableFuture<ModelResponse> outcome() {
        return outcome;
    }

    /** Waits for the response, and cancels the request if the thread is interrupted meanwhile. */
    ModelResponse await() throws InterruptedException {
        try {
            return outcome.get();
        } catch (ExecutionException e) {
            throw e.getCause() instanceof BackendException failure
                    ? failure
                    : new BackendException(ErrorCode.INTERNAL, "internal error: " + e.getCause(), e);
        } catch (InterruptedException e) {
            outcome.cancel(false); // a response that comes is closed
            request.cancel();
            if (!outcome.isCancelled() && !outcome.isCompletedExceptionally()) {
                outcome.join().close();
            }
            throw e;
        }
    }

    @Override
    public void onResponse(ModelResponse received) {
        if (response == null) {
            response = received;
            return;
        }
        received.close();
        isOneOfSeveral = true;
        request.cancel();
    }

    @Override
    public void onCompleted() {
        ModelResponse received = response;
        if (received == null || isOneOfSeveral) {
            fail(new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "model '" + model + "': " + (isOneOfSeveral ? "several responses" : "no response")
                            + " (expected: one; send with an observer to a decoupled model)"));
        } else {
            completion.execute(() -> complete(received));
        }
    }

    @Override
    public void onError(BackendException error) {
        if (isOneOfSeveral) {
            onCompleted();
        } else {
            fail(error);
        }
    }

    private void complete(ModelResponse received) {
        if (!outcome.complete(received)) { // its receiver waits no more
            received.close();
        }
    }

    private void fail(BackendException error) {
        ModelResponse received = response;
        if (received != null) {
            received.close();
        }
        completion.execute(() -> outcome.completeExceptionally(error));
    }
}
