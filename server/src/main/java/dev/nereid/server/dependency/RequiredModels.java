package dev.nereid.server.dependency;

import java.util.List;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import java.util.concurrent.ConcurrentSkipListSet;

/** The models that one version requires, as its backend declares them during the load. Safe for use by any thread. */
public final class RequiredModels {
    private final ModelRequirer requirer;
    private final Set<String> names = new ConcurrentSkipListSet<>();
    private volatile boolean ended;

    /** Creates an empty set. Its requirer loads the declared models. */
    public RequiredModels(ModelRequirer requirer) {
        this.requirer = requirer;
    }

    /**
     * Adds a model, and waits until it serves.
     *
     * @throws dev.nereid.api.InferenceException as {@link ModelRequirer#require}; the model is not added
     * @throws IllegalStateException if the load has ended, or as there
     */
    public void require(String name) {
        if (ended) {
            throw new IllegalStateException(
                    "requires: the load has ended (expected: a call in Backend.complete or Backend.load)");
        }
        if (requirer.require(name)) {
            names.add(name);
        }
    }

    /** Adds no more models, as the load ends. */
    public void end() {
        ended = true;
    }

    /** Returns the names that were declared so far, without the name of the model itself. */
    public Set<String> names() {
        return Set.copyOf(names);
    }

    /**
     * Finds the required models that do not leave the server ready. Instances that are unavailable for a while count as
     * ready. Never blocks.
     *
     * @return their names; empty if all leave it ready
     */
    public List<String> failed() {
        return names.isEmpty() ? List.of() : requirer.failed();
    }

    /**
     * Finds the required models that cannot serve now. Never blocks; the stage completes within seconds, on any thread.
     *
     * @return their names; empty if all can serve
     */
    public CompletionStage<List<String>> checkReady() {
        return names.isEmpty() ? CompletableFuture.completedStage(List.of()) : requirer.checkReady();
    }
}
