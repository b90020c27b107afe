package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import java.util.List;
import java.util.OptionalInt;

/**
 * Rate limiter options. Immutable.
 *
 * @param resources the amounts of resources; the amount of a resource that is not listed is the largest that an instance
 *     needs
 */
public record RateLimitOptions(List<Resource> resources) {
    public RateLimitOptions {
        resources = List.copyOf(resources);
    }

    /**
     * The available amount of one rate limiter resource. Immutable.
     *
     * @param name the resource's name, as in {@code instance_group.rate_limiter.resources}
     * @param count the amount; 0 or more
     * @param device the number of the device that has it; empty for each device; without meaning for a resource that
     *     all devices share
     */
    public record Resource(String name, int count, OptionalInt device) {
        public Resource {
            requireNonNull(name, "name");
            requireNonNull(device, "device");
            if (name.isEmpty()) {
                throw new IllegalArgumentException("name: empty (expected: the name of a resource)");
            }
            if (count < 0) {
                throw new IllegalArgumentException("count: " + count + " (expected: >= 0)");
            }
            if (device.isPresent() && device.getAsInt() < 0) {
                throw new IllegalArgumentException("device: " + device.getAsInt() + " (expected: >= 0)");
            }
        }
    }
}
