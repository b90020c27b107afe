package dev.nereid.scheduler.rate;

import static java.util.Objects.requireNonNull;

import java.util.List;

/**
 * Resources and priority of the executions of an instance. Immutable.
 *
 * @param priority the weight of an execution: an instance of priority 2 is granted half the permits of one of priority
 *     1; 0 counts as 1
 * @param resources the resources that each execution takes
 */
public record RateProfile(int priority, List<Resource> resources) {
    /** No resources, and the default priority. */
    public static final RateProfile NONE = new RateProfile(0, List.of());

    /** Checks and copies the components. */
    public RateProfile {
        requireNonNull(resources, "resources");
        resources = List.copyOf(resources);
        if (priority < 0) {
            throw new IllegalArgumentException("priority: " + priority + " (expected: >= 0)");
        }
    }

    /**
     * An amount of a resource that each execution of an instance takes. Immutable.
     *
     * @param global whether all devices share it; otherwise each device has its own
     * @param count the amount; 0 or more
     */
    public record Resource(String name, boolean global, int count) {
        public Resource {
            requireNonNull(name, "name");
            if (count < 0) {
                throw new IllegalArgumentException("count: " + count + " (expected: >= 0)");
            }
        }
    }
}
