package dev.nereid.server.client;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.ModelResponseObserver;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Delivers the responses of a request of a model to another one, from its submission to its end. */
final class SentModelRequest implements ResponseObserver {
    private static final Logger LOG = LoggerFactory.getLogger(SentModelRequest.class);

    private final OutgoingRequest request;
    private final String model;
    private final ModelResponseObserver observer;
    private final OpenResponses open;
    private final ResponseFlow flow;

    /** The action on cancellation of the cause; completed requests close it. */
    private final AtomicReference<@Nullable CancelHook> hook = new AtomicReference<>();

    /**
     * Creates a request that is not submitted yet.
     *
     * @param request cancelled with its cause, and by an observer that fails
     * @param model the name of the other model, for the log
     * @param observer receives the responses
     * @param open takes note of the responses
     */
    SentModelRequest(OutgoingRequest request, String model, ModelResponseObserver observer, OpenResponses open) {
        this.request = request;
        this.model = model;
        this.observer = observer;
        this.open = open;
        flow = new ObserverFlow(observer);
    }

    /**
     * Begins the request.
     *
     * @param cause registers an action that runs when the causing request is cancelled
     */
    void begin(Function<Runnable, CancelHook> cause) {
        hook.set(cause.apply(request::cancel));
    }

    @Override
    public void onResponse(InferResponse response) {
        boolean last = response.isFinal();
        ReceivedResponse received = new ReceivedResponse(response, open);
        boolean accepted = false;
        try {
            accepted = guard("onResponse", () -> observer.onResponse(received));
        } finally { // also after an error of the virtual machine: somebody may wait for the end
            if (!accepted) {
                received.close();
                request.cancel();
            }
            if (last) {
                end("onCompleted", observer::onCompleted);
            }
        }
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        guard("onFailedResponse", () -> observer.onFailedResponse(ServerModelClient.translate(error)));
    }

    @Override
    public void onCompleted() {
        end("onCompleted", observer::onCompleted);
    }

    @Override
    public void onError(InferenceException error) {
        end("onError", () -> observer.onError(ServerModelClient.translate(error)));
    }

    @Override
    public ResponseFlow flow() {
        return flow;
    }

    private void end(String method, Runnable call) {
        closeHook();
        guard(method, call);
    }

    private void closeHook() {
        CancelHook registered = hook.getAndSet(null);
        if (registered != null) {
            registered.close();
        }
    }

    /** Calls the observer; returns whether it threw nothing. */
    private boolean guard(String method, Runnable call) {
        try {
            call.run();
            return true;
        } catch (RuntimeException e) {
            LOG.atError()
                    .addKeyValue("model", model)
                    .setCause(e)
                    .log("observer of a model's request failed in {} (model '{}')", method, model);
            return false;
        }
    }
}
