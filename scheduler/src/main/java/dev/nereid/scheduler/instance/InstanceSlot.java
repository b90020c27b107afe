package dev.nereid.scheduler.instance;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.rate.RateProfile;
import dev.nereid.spi.Device;
import dev.nereid.spi.ModelInstance;

/**
 * A model instance with its name, device and placement, to be owned by a scheduler. Immutable except for its
 * availability.
 *
 * @param name the instance's name, such as {@code resnet50_0_1}
 * @param instance the instance, already isolated from its plugin; closed by the scheduler
 * @param rate the limited resources that its executions take
 * @param placement places the thread of the instance
 * @param availability whether the instance takes batches
 */
public record InstanceSlot(
        String name,
        Device device,
        ModelInstance instance,
        RateProfile rate,
        ThreadPlacement placement,
        InstanceAvailability availability) {
    public InstanceSlot {
        requireNonNull(name, "name");
        requireNonNull(device, "device");
        requireNonNull(instance, "instance");
        requireNonNull(rate, "rate");
        requireNonNull(placement, "placement");
        requireNonNull(availability, "availability");
    }

    /**
     * Creates a slot for an instance that always takes batches.
     *
     * @param instance the instance; closed by the scheduler
     * @param rate the limited resources that its executions take
     * @param placement places the thread of the instance
     */
    public InstanceSlot(
            String name, Device device, ModelInstance instance, RateProfile rate, ThreadPlacement placement) {
        this(name, device, instance, rate, placement, new InstanceAvailability());
    }

    /**
     * Creates a slot for an instance that takes no limited resources and runs anywhere.
     *
     * @param instance the instance; closed by the scheduler
     */
    public InstanceSlot(String name, Device device, ModelInstance instance) {
        this(name, device, instance, RateProfile.NONE, ThreadPlacement.ANYWHERE);
    }
}
