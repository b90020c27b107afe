package dev.nereid.scheduler.statistics;

/** Receives the compute times of a request that succeeds, before its observer is notified. */
public interface ComputeListener {
    /**
     * Receives the times, in nanoseconds. Called by the thread that completes the request; short, does not throw.
     *
     * @param input the time to prepare the inputs
     * @param infer the time to compute the outputs
     * @param output the time from the computed outputs to the end
     */
    void computed(long input, long infer, long output);
}
