package dev.nereid.server.control;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;

/** Refuses to load and unload models. Immutable. */
public final class RefusedModelControl implements ModelControl {
    private final String reason;
    private final Optional<RepositoryIndex> index;

    private RefusedModelControl(String reason, Optional<RepositoryIndex> index) {
        this.reason = reason;
        this.index = index;
    }

    /** Returns the control where the repository alone decides. */
    static ModelControl ofRepository(RepositoryIndex index) {
        return new RefusedModelControl(
                "explicit model load / unload is not allowed if polling is enabled", Optional.of(index));
    }

    /** Returns the control of a server that does not list its models either. */
    public static ModelControl ofServer(String reason) {
        return new RefusedModelControl(reason, Optional.empty());
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
        return index.map(RepositoryIndex::read).orElseGet(this::refuse);
    }

    private <T> CompletionStage<T> refuse() {
        return CompletableFuture.failedStage(new InferenceException(ErrorCode.UNAVAILABLE, reason));
    }
}
