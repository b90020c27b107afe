package dev.nereid.server;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Refuses all requests to a server that could not be initialized. Immutable. */
final class FailedModelControl implements ModelControl {
    /** The only instance. */
    static final FailedModelControl INSTANCE = new FailedModelControl();

    private FailedModelControl() {}

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

    private static <T> CompletionStage<T> refused() {
        return CompletableFuture.failedStage(new InferenceException(ErrorCode.UNAVAILABLE, "Server not ready"));
    }
}
