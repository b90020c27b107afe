package dev.nereid.scheduler.statistics;

/** Receives the compute times of a request that succeeds, before its observer is notified. */
public interface ComputeListener {
    /**
     * Receives the times, in nanoseconds. Called by the thread that completes the request; short, does not throw.
     *
     * @param input how long inputs were prepared
     * @param infer how long outputs were computed
     * @param output how long outputs were passed on
     */
    void computed(long input, long infer, long output);
}
