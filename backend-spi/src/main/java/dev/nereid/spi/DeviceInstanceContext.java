package dev.nereid.spi;

import java.util.List;

/**
 * Configuration of the device of an instance, for backends of devices. Immutable. <em>Implemented by the server.</em>
 *
 * <p>The context of each instance is one: {@code context instanceof DeviceInstanceContext device}.
 *
 * @since 1.0
 */
public interface DeviceInstanceContext extends InstanceContext {
    /**
     * Returns the optimization profiles that the configuration lists for the instance's group.
     *
     * @return the profiles; empty for most models
     */
    List<String> profiles();

    /**
     * Returns the further devices of the instance ({@code secondary_devices}).
     *
     * @return the devices; empty for most models
     */
    @Incubating
    default List<Device> secondaryDevices() {
        return List.of();
    }
}
