package dev.nereid.testkit;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelControl;
import dev.nereid.api.ModelStatus;
import dev.nereid.spi.ErrorCode;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Supplier;

/** Records load and unload requests and does nothing. Safe for use by any thread. */
public final class FakeControl implements ModelControl {
    /**
     * A recorded unload request. Immutable.
     *
     * @param model the model's name
     * @param dependents whether models that only this one needed are unloaded too
     */
    public record Unload(String model, boolean dependents) {}

    private final ConcurrentLinkedQueue<Load> loads = new ConcurrentLinkedQueue<>();
    private final ConcurrentLinkedQueue<Unload> unloads = new ConcurrentLinkedQueue<>();
    private volatile Optional<InferenceException> failure = Optional.empty();
    private volatile Optional<RuntimeException> defect = Optional.empty();

    private final Supplier<List<ModelStatus>> index;

    FakeControl(Supplier<List<ModelStatus>> index) {
        this.index = index;
    }

    /** Makes every request fail from now on. */
    public void failWith(ErrorCode code, String message) {
        failure = Optional.of(new InferenceException(code, message));
    }

    /** Makes every method throw from now on, as if the server had a defect. */
    public void breakWith(RuntimeException thrown) {
        defect = Optional.of(thrown);
    }

    /**
     * Returns the load requests.
     *
     * @return the requests, oldest first
     */
    public List<Load> loads() {
        return List.copyOf(loads);
    }

    /**
     * Returns the unload requests.
     *
     * @return the requests, oldest first
     */
    public List<Unload> unloads() {
        return List.copyOf(unloads);
    }

    @Override
    public CompletionStage<Void> load(Load load) {
        loads.add(load);
        return outcome();
    }

    @Override
    public CompletionStage<Void> unload(String model, boolean dependents) {
        unloads.add(new Unload(model, dependents));
        return outcome();
    }

    /** Completes on another thread, as that of a server does. */
    @Override
    public CompletionStage<List<ModelStatus>> index() {
        return CompletableFuture.supplyAsync(index);
    }

    private CompletionStage<Void> outcome() {
        defect.ifPresent(thrown -> {
            throw thrown;
        });
        return failure.<CompletionStage<Void>>map(CompletableFuture::failedStage)
                .orElseGet(() -> CompletableFuture.completedStage(null));
    }
}
