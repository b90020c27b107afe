package dev.nereid.benchmarks.micro;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;

/** Observer that signals a successful response and throws on any other outcome. As thread-safe as its action. */
public final class CompletionObserver implements ResponseObserver {
    private final Runnable completed;

    /** Creates an observer that runs an action after each response. */
    public CompletionObserver(Runnable completed) {
        this.completed = completed;
    }

    @Override
    public void onResponse(InferResponse response) {
        response.close();
        completed.run();
    }

    @Override
    public void onCompleted() {
        throw new IllegalStateException("end without a response (expected: one response)");
    }

    @Override
    public void onError(InferenceException error) {
        throw new IllegalStateException("refused", error);
    }
}
