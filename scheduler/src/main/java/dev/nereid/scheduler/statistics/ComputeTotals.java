package dev.nereid.scheduler.statistics;

/** Sums the compute times of requests that another request caused, such as ensemble steps. Not thread-safe. */
public final class ComputeTotals {
    private long inputNanos;
    private long inferNanos;
    private long outputNanos;

    /** Adds the times of one request, in nanoseconds. */
    public void add(long input, long infer, long output) {
        inputNanos += input;
        inferNanos += infer;
        outputNanos += output;
    }

    /** Returns a tally with these times, from the first step's submission to the request's completion. */
    public ExecutionTally tally(long startNanos, long endNanos) {
        return new ExecutionTally(startNanos, endNanos, inputNanos, inferNanos, outputNanos);
    }
}
