package dev.nereid.api;

import static java.util.Objects.requireNonNull;

/**
 * Forwards everything to another observer. The base of all observers that wrap another one, so that none forgets a
 * method with a default: without its flow, for instance, a slow client would never pause its model.
 */
public abstract class ForwardingObserver implements ResponseObserver {
    private final ResponseObserver observer;

    /**
     * Wraps an observer.
     *
     * @param observer the observer to forward to
     */
    protected ForwardingObserver(ResponseObserver observer) {
        this.observer = requireNonNull(observer, "observer");
    }

    @Override
    public void onResponse(InferResponse response) {
        observer.onResponse(response);
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        observer.onFailedResponse(error);
    }

    @Override
    public void onCompleted() {
        observer.onCompleted();
    }

    @Override
    public void onError(InferenceException error) {
        observer.onError(error);
    }

    @Override
    public void onRefused(InferenceException error) {
        observer.onRefused(error);
    }

    @Override
    public boolean isLong() {
        return observer.isLong();
    }

    @Override
    public RequestProtocol protocol() {
        return observer.protocol();
    }

    @Override
    public ResponseFlow flow() {
        return observer.flow();
    }
}
