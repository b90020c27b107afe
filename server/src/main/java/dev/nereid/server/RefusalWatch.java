package dev.nereid.server;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.RequestProtocol;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;

/** Records whether a request was refused, and notifies the observer of its client. */
final class RefusalWatch implements ResponseObserver {
    private final ResponseObserver client;
    private volatile boolean refused;

    RefusalWatch(ResponseObserver client) {
        this.client = client;
    }

    /** Returns whether the request was refused until now. */
    boolean isRefused() {
        return refused;
    }

    @Override
    public void onResponse(InferResponse response) {
        client.onResponse(response);
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        client.onFailedResponse(error);
    }

    @Override
    public void onCompleted() {
        client.onCompleted();
    }

    @Override
    public void onError(InferenceException error) {
        client.onError(error);
    }

    @Override
    public void onRefused(InferenceException error) {
        refused = true;
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
