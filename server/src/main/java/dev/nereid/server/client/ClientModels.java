package dev.nereid.server.client;

import dev.nereid.scheduler.client.RunningExecution;
import java.util.Optional;
import java.util.function.BooleanSupplier;

/**
 * The models of the server and their loads, as clients see them. An interface, since the life cycle of models depends on
 * the clients, and not the other way around. Safe for use by any thread.
 */
public interface ClientModels {
    /** Returns whether the server knows a model. */
    boolean isKnown(String key);

    /**
     * Returns the key of the model that clients mean by a name.
     *
     * @return the name itself if it is a key, or if no model has the name
     * @throws dev.nereid.api.InferenceException if several have the name
     */
    String key(String name);

    /** Finds the execution that a thread is in. */
    Optional<RunningExecution> executionOn(Thread thread);

    /**
     * Returns the step of a load that the calling thread performs.
     *
     * @param model the model's name
     * @return {@code true} until the end of the step; always {@code false} if the thread performs none
     */
    BooleanSupplier currentStep(String model);
}
