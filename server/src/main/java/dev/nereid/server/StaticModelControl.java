package dev.nereid.server;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.spi.ErrorCode;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Refuses to load and unload models, which are all loaded at the start. Immutable. */
final class StaticModelControl implements ModelControl {
    @Override
    public CompletionStage<Void> load(Load load) {
        return refuse();
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return refuse();
    }

    private static CompletionStage<Void> refuse() {
        return CompletableFuture.failedStage(new InferenceException(
                ErrorCode.UNAVAILABLE, "explicit model load / unload is not allowed if polling is enabled"));
    }
}
