package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.queue.PriorityPolicy;
import java.util.List;

/**
 * Configures how requests of a model wait and are batched. Immutable.
 *
 * @param dynamic whether requests of several clients are batched; otherwise each is executed alone
 * @param preferredSizes the sizes that are taken before the delay ends, in items; empty for the model's maximum batch
 *     size alone. Of no effect without a delay
 * @param maxQueueDelayNanos the maximum time that the oldest request waits for others, in nanoseconds; 0 for none
 * @param preserveOrdering whether responses are delivered in the order in which their requests began
 * @param priorities the priority levels, their timeouts and their maximum queue sizes
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

    /** Creates a policy without priorities, timeouts, queue limits and order of responses. */
    public BatchingPolicy(boolean dynamic, List<Integer> preferredSizes, long maxQueueDelayNanos) {
        this(dynamic, preferredSizes, maxQueueDelayNanos, false, PriorityPolicy.NONE);
    }
}
