package dev.nereid.scheduler;

import java.util.List;

/**
 * How a model's requests are put together. Immutable.
 *
 * @param dynamic whether requests of several clients are batched; otherwise each is executed alone
 * @param preferredSizes the sizes that are dispatched without waiting for the delay, in items; empty for the model's
 *     largest batch alone. They matter only with a delay
 * @param maxQueueDelayNanos how long the oldest request may wait for others, in nanoseconds; 0 for not at all
 */
public record BatchingPolicy(boolean dynamic, List<Integer> preferredSizes, long maxQueueDelayNanos) {
    /** The default scheduler: one request is one execution. */
    public static final BatchingPolicy NONE = new BatchingPolicy(false, List.of(), 0);

    /** Checks and copies the components. */
    public BatchingPolicy {
        preferredSizes = List.copyOf(preferredSizes);
        for (int size : preferredSizes) {
            if (size < 1) {
                throw new IllegalArgumentException("preferredSizes: " + preferredSizes + " (expected: each >= 1)");
            }
        }
        if (maxQueueDelayNanos < 0) {
            throw new IllegalArgumentException("maxQueueDelayNanos: " + maxQueueDelayNanos + " (expected: >= 0)");
        }
    }
}
