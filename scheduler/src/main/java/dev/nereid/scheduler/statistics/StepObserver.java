package dev.nereid.scheduler.statistics;

/**
 * Observes a request that is part of another one, such as an ensemble step.
 *
 * <p>The request counts in the limits of its model alone. The limits of the server have admitted the other request,
 * which must not be refused when it is half done. It is an interface because steps are executed by {@code ensemble},
 * which the packages that complete requests do not know.
 */
public interface StepObserver {
    /**
     * Receives the compute times of the request if it succeeds, in nanoseconds. Called before the observer is notified,
     * by the thread that completes the request; short, does not throw.
     *
     * @param input the time to prepare the inputs
     * @param infer the time to compute the outputs
     * @param output the time from the computed outputs to the end
     */
    void computed(long input, long infer, long output);
}
