package dev.nereid.server.client;

import dev.nereid.api.InferResponse;
import dev.nereid.api.InferenceException;
import dev.nereid.api.ResponseFlow;
import dev.nereid.api.ResponseObserver;
import dev.nereid.server.response.HeldResponse;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.CancelHook;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelResponseObserver;
import java.util.concurrent.atomic.AtomicReference;
import java.util.function.Consumer;
import java.util.function.Function;
import java.util.function.Supplier;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Delivers the responses of a model's request to another model. It lives from the submission to the end of the request.
 *
 * <p>The backend's observer is called on the thread that delivers the response, since the server reads the flow of the
 * observer before the next response.
 */
final class SentModelRequest implements ResponseObserver {
    private static final Logger LOG = LoggerFactory.getLogger(SentModelRequest.class);

    private final OutgoingRequest request;
    private final String model;
    private final Function<InferResponse, @Nullable HeldResponse> holding;

    /**
     * Receives the responses. {@code null} after the end: the scheduler keeps this object as long as a response is open,
     * and the observer of a backend may refer to that.
     */
    private volatile @Nullable ModelResponseObserver observer;

    /** The action on cancellation of the causes; completed requests close it. */
    private final AtomicReference<@Nullable CancelHook> hook = new AtomicReference<>();

    /**
     * Creates a request that is not submitted yet.
     *
     * @param request cancelled with its cause, and by an observer that fails
     * @param model the name of the other model, for the log
     * @param holding holds a response; {@code null} if the sender is closed
     */
    SentModelRequest(
            OutgoingRequest request,
            String model,
            ModelResponseObserver observer,
            Function<InferResponse, @Nullable HeldResponse> holding) {
        this.request = request;
        this.model = model;
        this.observer = observer;
        this.holding = holding;
    }

    /** Begins the request, which is cancelled when all of its causes are. */
    void begin(CausingRequests causes) {
        hook.set(causes.onCancel(request::cancelNow));
    }

    @Override
    public void onResponse(InferResponse response) {
        boolean last = response.isFinal();
        HeldResponse held = holding.apply(response);
        if (held == null) {
            request.cancelNow();
            end(
                    "onError",
                    receiver -> receiver.onError(new BackendException(
                            ErrorCode.UNAVAILABLE,
                            "response of model '" + model + "': the model that requested it is closed")));
            return;
        }
        ReceivedResponse received = new ReceivedResponse(response, held);
        boolean accepted = false;
        try {
            accepted = guard("onResponse", receiver -> receiver.onResponse(received));
        } finally { // also after an error of the virtual machine: somebody may wait for the end
            if (!accepted) {
                held.close();
                request.cancelNow();
            }
            if (last) {
                end("onCompleted", ModelResponseObserver::onCompleted);
            }
        }
    }

    @Override
    public void onFailedResponse(InferenceException error) {
        guard("onFailedResponse", receiver -> receiver.onFailedResponse(ServerModelClient.translate(error)));
    }

    @Override
    public void onCompleted() {
        end("onCompleted", ModelResponseObserver::onCompleted);
    }

    @Override
    public void onError(InferenceException error) {
        end("onError", receiver -> receiver.onError(ServerModelClient.translate(error)));
    }

    @Override
    public void onRefused(InferenceException error) {
        end("onRefused", receiver -> receiver.onRefused(ServerModelClient.translate(error)));
    }

    @Override
    public ResponseFlow flow() {
        return observer == null ? ResponseFlow.OPEN : new ObserverFlow(() -> observer);
    }

    private void end(String method, Consumer<ModelResponseObserver> call) {
        closeHook();
        guard(method, call);
        observer = null;
    }

    private void closeHook() {
        CancelHook registered = hook.getAndSet(null);
        if (registered != null) {
            registered.close();
        }
    }

    /** Calls the observer; returns whether it threw nothing. */
    private boolean guard(String method, Consumer<ModelResponseObserver> call) {
        ModelResponseObserver receiving = observer;
        if (receiving == null) {
            return false;
        }
        try {
            call.accept(receiving);
            return true;
        } catch (RuntimeException e) {
            LOG.atError()
                    .addKeyValue("model", model)
                    .setCause(e)
                    .log("observer of a model's request failed in {} (model '{}')", method, model);
            return false;
        }
    }

    /**
     * The flow of responses to an observer of a backend. It is open if the observer fails to say so, and after the end.
     *
     * @param observer returns the observer; {@code null} after the end, since the observer may refer to responses, and a
     *     request in flight to this flow
     */
    private record ObserverFlow(Supplier<@Nullable ModelResponseObserver> observer) implements ResponseFlow {
        @Override
        public boolean isOpen() {
            try {
                ModelResponseObserver receiving = observer.get();
                return receiving == null || receiving.isReady();
            } catch (RuntimeException e) {
                LOG.atError().setCause(e).log("observer of a model's request failed in isReady");
                return true;
            }
        }

        @Override
        public void whenOpen(Runnable action) {
            ModelResponseObserver receiving = observer.get();
            if (receiving == null) {
                action.run();
                return;
            }
            try {
                receiving.onReady(action);
            } catch (RuntimeException e) {
                LOG.atError().setCause(e).log("observer of a model's request failed in onReady");
                action.run();
            }
        }
    }
}
