package dev.nereid.walkthrough;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.InferenceResponse;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.ModelResponseObserver;
import dev.nereid.spi.ResponseSender;

/** Passes on the responses of the decoupled model "words" as those of a request, as fast as its client reads them. */
final class Narrate implements ModelResponseObserver {
    private final ResponseSender sender;

    private Narrate(ResponseSender sender) {
        this.sender = sender;
    }

    /** Starts to respond. The request is detached from its execution, which may end. */
    static void start(InferenceRequest request, ModelClient models) {
        models.request("words")
                .onBehalfOf(request)
                .input("PROMPT", request.requireInput("PROMPT"))
                .send(new Narrate(request.sender()));
    }

    @Override
    public boolean isReady() {
        return sender.isReady();
    }

    @Override
    public void onReady(Runnable action) {
        sender.onReady(action);
    }

    @Override
    public void onResponse(ModelResponse word) {
        InferenceResponse response = sender.newResponse();
        try (word) {
            response.put("WORD", word.requireOutput("WORD"), word.lease("WORD"));
            sender.send(response);
        } catch (BackendException e) {
            response.discard();
            sender.sendError(e);
        }
    }

    @Override
    public void onFailedResponse(BackendException error) {
        sender.sendError(error);
    }

    @Override
    public void onCompleted() {
        sender.complete();
    }

    @Override
    public void onError(BackendException error) {
        sender.fail(error);
    }
}
