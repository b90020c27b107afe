package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Refuses to load and unload models where the repository alone decides. Immutable. */
final class RefusedModelControl implements ModelControl {
    private final RepositoryIndex index;

    RefusedModelControl(RepositoryIndex index) {
        this.index = index;
    }

    @Override
    public CompletionStage<Void> load(Load load) {
        return refuse();
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        return refuse();
    }

    @Override
    public CompletionStage<List<ModelStatus>> index() {
        return index.read();
    }

    private static CompletionStage<Void> refuse() {
        return CompletableFuture.failedStage(new InferenceException(
                ErrorCode.UNAVAILABLE, "explicit model load / unload is not allowed if polling is enabled"));
    }
}
