package dev.nereid.walkthrough;

import dev.nereid.spi.InferenceRequest;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelResponse;
import dev.nereid.spi.function.AsyncTensorFunction;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Sends IMAGE to the model "labels", and its LABEL to the model "phrase", whose TEXT is the output. */
public final class Describe implements AsyncTensorFunction {
    @Override
    public String name() {
        return "describe";
    }

    @Override
    public CompletionStage<?> apply(InferenceRequest request, ModelContext model) {
        ModelClient models = model.models();
        return models.request("labels")
                .onBehalfOf(request)
                .input("IMAGE", request.requireInput("IMAGE"))
                .output("LABEL")
                .send()
                .thenCompose(labels -> phrase(models, request, labels))
                .thenAccept(phrase -> respond(request, phrase));
    }

    private static CompletionStage<ModelResponse> phrase(
            ModelClient models, InferenceRequest request, ModelResponse labels) {
        try {
            return models.request("phrase")
                    .onBehalfOf(request)
                    .input("LABEL", labels.requireOutput("LABEL"))
                    .send()
                    .whenComplete((phrase, failure) -> labels.close());
        } catch (RuntimeException e) {
            labels.close();
            return CompletableFuture.failedStage(e);
        }
    }

    private static void respond(InferenceRequest request, ModelResponse phrase) {
        try (phrase) {
            request.response().put("TEXT", phrase.requireOutput("TEXT"), phrase.lease("TEXT"));
        }
    }
}
