package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import java.time.Duration;

/**
 * Options of models that are loaded on demand. Immutable.
 *
 * @param memoryBudget the bytes that loaded models may take together; 0 for no limit
 * @param maxWait how long a request waits for the load of its model at most
 * @param maxWaiting how many requests wait for loads at most
 * @param maxWaitingBytes the bytes of their inputs, at most
 */
public record DemandOptions(long memoryBudget, Duration maxWait, int maxWaiting, long maxWaitingBytes) {
    /** The defaults of the command line. */
    public static final DemandOptions DEFAULT = new DemandOptions(0, Duration.ofSeconds(60), 4096, 256L << 20);

    /** Checks the components. */
    public DemandOptions {
        requireNonNull(maxWait, "maxWait");
        if (memoryBudget < 0) {
            throw new IllegalArgumentException("memoryBudget: " + memoryBudget + " (expected: >= 0)");
        }
        if (!maxWait.isPositive()) {
            throw new IllegalArgumentException("maxWait: " + maxWait + " (expected: > 0)");
        }
        if (maxWaiting < 1 || maxWaitingBytes < 1) {
            throw new IllegalArgumentException(
                    "maxWaiting: " + maxWaiting + ", maxWaitingBytes: " + maxWaitingBytes + " (expected: >= 1)");
        }
    }

    /**
     * Replaces the budget.
     *
     * @param bytes the bytes that loaded models may take together; 0 for no limit
     * @return the changed options
     */
    public DemandOptions withMemoryBudget(long bytes) {
        return new DemandOptions(bytes, maxWait, maxWaiting, maxWaitingBytes);
    }

    /**
     * Replaces the longest wait.
     *
     * @param wait how long a request waits for the load of its model at most
     * @return the changed options
     */
    public DemandOptions withMaxWait(Duration wait) {
        return new DemandOptions(memoryBudget, wait, maxWaiting, maxWaitingBytes);
    }

    /**
     * Replaces the limits of waiting requests.
     *
     * @param requests how many requests wait at most
     * @param bytes the bytes of their inputs, at most
     * @return the changed options
     */
    public DemandOptions withMaxWaiting(int requests, long bytes) {
        return new DemandOptions(memoryBudget, maxWait, requests, bytes);
    }
}
