package dev.nereid.plugin.boundary;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;

/**
 * The observer of a plugin, through the plugin boundary. Its exceptions pass: the server logs them, and cancels the
 * request. Called by any thread, one call at a time.
 */
public final class IsolatedResponseObserver implements ModelResponseObserver {
    private final ModelResponseObserver observer;
    private final PluginBoundary boundary;

    public IsolatedResponseObserver(ModelResponseObserver observer, PluginBoundary boundary) {
        this.observer = observer;
        this.boundary = boundary;
    }

    @Override
    public void onResponse(ModelResponse response) {
        run("onResponse", () -> observer.onResponse(response));
    }

    @Override
    public void onFailedResponse(BackendException error) {
        run("onFailedResponse", () -> observer.onFailedResponse(error));
    }

    @Override
    public void onCompleted() {
        run("onCompleted", observer::onCompleted);
    }

    @Override
    public void onError(BackendException error) {
        run("onError", () -> observer.onError(error));
    }

    @Override
    public void onRefused(BackendException error) {
        run("onRefused", () -> observer.onRefused(error));
    }

    @Override
    public boolean isReady() {
        return boundary.call("ModelResponseObserver.isReady", observer::isReady);
    }

    @Override
    public void onReady(Runnable action) {
        run("onReady", () -> observer.onReady(action));
    }

    private void run(String method, Runnable call) {
        boundary.call("ModelResponseObserver." + method, () -> {
            call.run();
            return true;
        });
    }
}
