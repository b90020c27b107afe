package dev.nereid.scheduler.rate;

import static java.util.Objects.requireNonNull;

import java.util.OptionalInt;

/**
 * The available amount of a resource. Immutable.
 *
 * @param name the resource's name, as in model configurations
 * @param count the capacity; 0 or more
 * @param device the number of the device; empty for each device. The capacity of a global resource is the largest of
 *     its limits on any device
 */
public record ResourceLimit(String name, int count, OptionalInt device) {
    public ResourceLimit {
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
