package dev.nereid.server;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import java.util.concurrent.atomic.AtomicBoolean;

/**
 * Runs an action once a request is accepted: when it is submitted, or before its client is notified of something else than
 * a refusal. Safe for use by any thread.
 */
final class AcceptedStart implements ResponseObserver {
    private final ResponseObserver client;
    private final Runnable action;

    /** Whether the action was run, or will never be. */
    private final AtomicBoolean decided = new AtomicBoolean();

    AcceptedStart(ResponseObserver client, Runnable action) {
        this.client = client;
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
        client.onResponse(response);
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        submitted();
        client.onFailedResponse(error);
    }

    @Override
    public void onCompleted() {
        submitted();
        client.onCompleted();
    }

    @Override
    public void onError(InferenceException error) {
        submitted();
        client.onError(error);
    }

    @Override
    public void onRefused(InferenceException error) {
        decided.set(true);
        client.onRefused(error);
    }

    @Override
    public boolean isLong() {
        return client.isLong();
    }

    @Override
    public RequestProtocol protocol() {
        return client.protocol();
    }

    @Override
    public ResponseFlow flow() {
        return client.flow();
    }
}
