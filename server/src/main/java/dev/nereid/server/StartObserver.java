package dev.nereid.server;

import dev.nereid.api.ForwardingObserver;
import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseObserver;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Runs an action once a request that starts a sequence is accepted. The request is accepted when it was submitted, or
 * before its client receives anything but a refusal. Safe for use by any thread.
 */
final class StartObserver extends ForwardingObserver {
    private final Runnable action;

    /** Set when the action has begun, or when the request was refused and the action never runs. */
    private final AtomicBoolean decided = new AtomicBoolean();

    StartObserver(ResponseObserver client, Runnable action) {
        super(client);
        this.action = action;
    }

    /** Runs the action, unless the request was refused. */
    void submitted() {
        if (decided.compareAndSet(false, true)) {
            action.run();
        }
    }

    @Override
    public void onResponse(InferResponse response) {
        submitted();
        super.onResponse(response);
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        submitted();
        super.onFailedResponse(error);
    }

    @Override
    public void onCompleted() {
        submitted();
        super.onCompleted();
    }

    @Override
    public void onError(InferenceException error) {
        submitted();
        super.onError(error);
    }

    @Override
    public void onRefused(InferenceException error) {
        decided.set(true);
        super.onRefused(error);
    }
}
