package dev.nereid.scheduler.ensemble;

import java.util.Optional;

/** The models of all steps, kept loaded for one request. Safe for use by any thread. */
public interface PinnedModels extends AutoCloseable {
    /**
     * Returns the model of a step.
     *
     * @return the model, which may be used until the close
     */
    StepModel model(int step);

    /**
     * Returns the identity of the content of all models, as the key of a cached response contains it.
     *
     * @return empty if the identity is not known
     */
    default Optional<String> identity() {
        return Optional.empty();
    }

    /** Ends the use of the models. Called once, when no request to them is in flight. Never blocks. */
    @Override
    void close();
}
