package dev.nereid.scheduler.ensemble;

/** The models of all steps, kept loaded for one request. Safe for use by any thread. */
public interface PinnedModels extends AutoCloseable {
    /**
     * Returns the model of a step.
     *
     * @param step the index of the step
     * @return the model, which may be used until the close
     */
    StepModel model(int step);

    /** Ends the use of the models. Called once, when no request to them is in flight. Never blocks. */
    @Override
    void close();
}
