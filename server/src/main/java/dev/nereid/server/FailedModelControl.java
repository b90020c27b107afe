package dev.nereid.server;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Refuses loads, unloads and lists. Immutable. */
final class FailedModelControl implements ModelControl {
    private final String reason;

    FailedModelControl(String reason) {
        this.reason = reason;
    }

    @Override
    public CompletionStage<Void> load(Load load) {
        return refused();
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return refused();
    }

    @Override
    public CompletionStage<List<ModelStatus>> index() {
        return refused();
    }

    private <T> CompletionStage<T> refused() {
        return CompletableFuture.failedStage(new InferenceException(ErrorCode.UNAVAILABLE, reason));
    }
}
