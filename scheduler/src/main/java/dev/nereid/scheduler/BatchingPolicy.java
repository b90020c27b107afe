package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.queue.PriorityPolicy;
import java.util.List;

/**
 * Configures how requests of a model wait and are batched. Immutable.
 *
 * @param dynamic whether requests of several clients are batched; otherwise each is executed alone
 * @param preferredSizes the sizes that are dispatched without waiting for the delay, in items; empty for the model's
 *     largest batch alone. They matter only with a delay
 * @param maxQueueDelayNanos how long the oldest request may wait for others, in nanoseconds; 0 for not at all
 * @param preserveOrdering whether clients are answered in the order in which their requests began
 * @param priorities who goes first, how long requests may wait, and how many
 */
public record BatchingPolicy(
        boolean dynamic,
        List<Integer> preferredSizes,
        long maxQueueDelayNanos,
        boolean preserveOrdering,
        PriorityPolicy priorities) {
    /** The default scheduler: one request is one execution. */
    public static final BatchingPolicy NONE = new BatchingPolicy(false, List.of(), 0);

    /** Checks and copies the components. */
    public BatchingPolicy {
        requireNonNull(priorities, "priorities");
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

    /**
     * Makes a policy under which all requests are alike, any number of them wait for any time, and each is answered as
     * soon as it can be.
     *
     * @param dynamic whether requests of several clients are batched
     * @param preferredSizes the sizes that are dispatched without waiting for the delay, in items
     * @param maxQueueDelayNanos how long the oldest request may wait for others, in nanoseconds
     */
    public BatchingPolicy(boolean dynamic, List<Integer> preferredSizes, long maxQueueDelayNanos) {
        this(dynamic, preferredSizes, maxQueueDelayNanos, false, PriorityPolicy.NONE);
    }
}
