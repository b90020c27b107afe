package dev.nereid.benchmarks;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;

/** Passes on that a request was answered, and fails if it was not answered well. As thread-safe as what it runs. */
final class Told implements ResponseObserver {
    private final Runnable answered;

    Told(Runnable answered) {
        this.answered = answered;
    }

    @Override
    public void onResponse(InferResponse response) {
        response.close();
        answered.run();
    }

    @Override
    public void onEnd() {
        throw new IllegalStateException("end without a response (expected: one response)");
    }

    @Override
    public void onError(InferenceException error) {
        throw new IllegalStateException("refused", error);
    }
}
