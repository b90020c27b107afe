package dev.nereid.scheduler.rate;

import static java.util.Objects.requireNonNull;

/**
 * An amount of a resource that each execution of an instance takes. Immutable.
 *
 * @param global whether all devices share it; otherwise each device has its own
 * @param count the amount; 0 or more
 */
public record RateResource(String name, boolean global, int count) {
    public RateResource {
        requireNonNull(name, "name");
        if (count < 0) {
            throw new IllegalArgumentException("count: " + count + " (expected: >= 0)");
        }
    }
}
