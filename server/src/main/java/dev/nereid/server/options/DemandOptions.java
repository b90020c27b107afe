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
}
