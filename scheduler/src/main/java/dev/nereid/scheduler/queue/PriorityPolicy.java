package dev.nereid.scheduler.queue;

import static java.util.Objects.requireNonNull;

import java.util.Map;

/**
 * The priority levels of a model and their queue policies. Level 1 goes first. Levels are unsigned. Immutable.
 *
 * @param levels how many levels there are; 0 for none, so that all requests are alike
 * @param defaultLevel the level of requests that ask for none, or for one that is not there; of no meaning without
 *     levels
 * @param defaultPolicy what holds on levels without a policy of their own, and without levels
 * @param byLevel what holds on the other levels; of no meaning without levels
 */
public record PriorityPolicy(
        long levels, long defaultLevel, QueuePolicy defaultPolicy, Map<Long, QueuePolicy> byLevel) {
    /** No levels, no time-out, no bound. */
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

    /** Says whether all requests are alike in priority. */
    boolean isFlat() {
        return Long.compareUnsigned(levels, 1) <= 0;
    }

    /**
     * Returns the level of a request.
     *
     * @param requested the level it asks for, 0 for none
     * @return the level it gets: 0 without levels
     */
    public long level(long requested) {
        if (levels == 0) {
            return 0;
        }
        return isLevel(requested, levels) ? requested : defaultLevel;
    }

    /**
     * Returns what holds on a level.
     *
     * @param level a level as {@link #level} gives it
     * @return its policy
     */
    public QueuePolicy policy(long level) {
        return levels == 0 ? defaultPolicy : byLevel.getOrDefault(level, defaultPolicy);
    }

    private static boolean isLevel(long level, long levels) {
        return level != 0 && Long.compareUnsigned(level, levels) <= 0;
    }
}
