package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelInstance;

/**
 * A model instance with its name, device and placement, to be owned by a scheduler. Immutable.
 *
 * @param name the instance's name, for instance {@code resnet50_0_1}
 * @param device where it runs
 * @param instance the instance, isolated from its plugin already, to be closed by the scheduler
 * @param rate what its executions take of limited resources
 * @param placement where its thread runs
 */
public record InstanceSlot(
        String name, Device device, ModelInstance instance, RateProfile rate, ThreadPlacement placement) {
    /** Checks the components. */
    public InstanceSlot {
        requireNonNull(name, "name");
        requireNonNull(device, "device");
        requireNonNull(instance, "instance");
        requireNonNull(rate, "rate");
        requireNonNull(placement, "placement");
    }

    /**
     * Makes a slot for an instance that takes no limited resources and runs anywhere.
     *
     * @param name the instance's name
     * @param device where it runs
     * @param instance the instance, to be closed by the scheduler
     */
    public InstanceSlot(String name, Device device, ModelInstance instance) {
        this(name, device, instance, RateProfile.NONE, ThreadPlacement.ANYWHERE);
    }
}
