package dev.nereid.scheduler;

import static java.util.Objects.requireNonNull;

import dev.nereid.spi.Device;
import dev.nereid.spi.ModelInstance;

/**
 * An instance and its place, handed to a scheduler that owns it from then on. Immutable.
 *
 * @param name the instance's name, for instance {@code resnet50_0_1}
 * @param device where it runs
 * @param instance the instance, to be closed by the scheduler
 */
public record InstanceSlot(String name, Device device, ModelInstance instance) {
    /** Checks the components. */
    public InstanceSlot {
        requireNonNull(name, "name");
        requireNonNull(device, "device");
        requireNonNull(instance, "instance");
    }
}
