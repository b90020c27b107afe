package dev.nereid.scheduler.queue;

import static java.util.Objects.requireNonNull;

import java.util.Map;

/**
 * The priority levels of a model and their queue policies. Level 1 goes first. Levels are unsigned. Immutable.
 *
 * @param levels the number of levels; 0 for none, so that all requests have the same priority
 * @param defaultLevel the level of requests that specify none, or a level that does not exist; ignored without levels
 * @param defaultPolicy the policy of levels without their own, and of models without levels
 * @param byLevel the policies of the other levels; ignored without levels
 */
public record PriorityPolicy(
        long levels, long defaultLevel, QueuePolicy defaultPolicy, Map<Long, QueuePolicy> byLevel) {
    /** No levels, no timeout, no size limit. */
    public static final PriorityPolicy NONE = new PriorityPolicy(0, 0, QueuePolicy.NONE, Map.of());

    /** Checks and copies the components. */
    public PriorityPolicy {
        requireNonNull(defaultPolicy, "defaultPolicy");
        byLevel = Map.copyOf(byLevel);
        if (levels != 0 && !isLevel(defaultLevel, levels)) {
            throw new IllegalArgumentException("defaultLevel: " + Long.toUnsignedString(defaultLevel)
                    + " (expected: 1 to " + Long.toUnsignedString(levels) + ")");
        }
    }

    /** Returns whether all requests have the same priority. */
    boolean isFlat() {
        return Long.compareUnsigned(levels, 1) <= 0;
    }

    /** Returns the effective level of a request that specifies a level, or 0 for none; 0 without levels. */
    public long level(long requested) {
        if (levels == 0) {
            return 0;
        }
        return isLevel(requested, levels) ? requested : defaultLevel;
    }

    /** Returns the policy of a level as returned by {@link #level}. */
    public QueuePolicy policy(long level) {
        return levels == 0 ? defaultPolicy : byLevel.getOrDefault(level, defaultPolicy);
    }

    private static boolean isLevel(long level, long levels) {
        return level != 0 && Long.compareUnsigned(level, levels) <= 0;
    }
}
