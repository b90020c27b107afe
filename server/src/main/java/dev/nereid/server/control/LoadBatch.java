package dev.nereid.server.control;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.InferenceException;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.Function;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Loads many models in a given order, a limited number at a time. A load begins when an earlier one ends. Begun once;
 * then safe for use by any thread.
 */
final class LoadBatch {
    private static final Logger LOG = LoggerFactory.getLogger(LoadBatch.class);

    private final Function<String, CompletionStage<Void>> load;
    private final List<String> order;

    /** The outcomes by the keys of the models; only read. */
    private final Map<String, CompletableFuture<Void>> outcomes = new LinkedHashMap<>();

    private final AtomicInteger next = new AtomicInteger();

    /** How many loads are in progress beyond the window. */
    private final AtomicInteger excess = new AtomicInteger();

    /** Creates a batch of models by their keys, in the order of their loads, and begins nothing. */
    LoadBatch(Collection<String> models, Function<String, CompletionStage<Void>> load) {
        this.load = load;
        models.forEach(model -> outcomes.put(model, new CompletableFuture<>()));
        order = List.copyOf(outcomes.keySet());
    }

    /** Begins the first loads, so many at a time, and returns at once. */
    void begin(int window) {
        for (int i = 0; i < window; i++) {
            loadNext();
        }
    }

    /** Begins one more load, since one is paused. */
    void extend() {
        loadNext();
    }

    /** Begins no load after the next that ends, since one that was paused goes on. */
    void reduce() {
        excess.incrementAndGet();
    }

    private boolean isInExcess() {
        return excess.getAndUpdate(more -> Math.max(0, more - 1)) > 0;
    }

    /** Begins the next load that does not end at once, as all do once the server stops. */
    private void loadNext() {
        boolean isEnded = true;
        while (isEnded && next.get() < order.size()) {
            int index = next.getAndIncrement();
            if (index >= order.size()) {
                return;
            }
            CompletionStage<Void> running = load.apply(order.get(index));
            isEnded = running.toCompletableFuture().isDone();
            boolean goesOn = !isEnded;
            running.whenComplete((_, failure) -> {
                end(order.get(index), failure);
                if (goesOn && !isInExcess()) {
                    loadNext();
                }
            });
        }
    }

    private void end(String model, @Nullable Throwable failure) {
        CompletableFuture<Void> outcome = requireNonNull(outcomes.get(model));
        if (failure == null) {
            outcome.complete(null);
        } else {
            outcome.completeExceptionally(failure);
        }
    }

    boolean isDone() {
        for (CompletableFuture<Void> outcome : outcomes.values()) {
            if (!outcome.isDone()) {
                return false;
            }
        }
        return true;
    }

    void await() throws InterruptedException {
        for (CompletableFuture<Void> outcome : outcomes.values()) {
            try {
                ControlTasks.await(outcome);
            } catch (InferenceException e) {
                LOG.atDebug().setCause(e).log("load at the start failed"); // reported by failures()
            }
        }
    }

    /** Returns the reasons of the loads that have failed so far, by the keys of the models. */
    Map<String, String> failures() {
        Map<String, String> failures = new LinkedHashMap<>();
        outcomes.forEach((model, outcome) -> {
            if (outcome.isCompletedExceptionally()) {
                failures.put(model, String.valueOf(outcome.exceptionNow().getMessage()));
            }
        });
        return failures;
    }
}
