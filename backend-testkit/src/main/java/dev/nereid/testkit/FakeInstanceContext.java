package dev.nereid.testkit;

import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import java.util.List;

/**
 * An {@link InstanceContext} for tests of backends. Immutable.
 *
 * @param name the name of the instance
 * @param device the device of the instance
 * @param profiles the optimization profiles of the instance
 */
public record FakeInstanceContext(String name, Device device, List<String> profiles) implements InstanceContext {
    /** Copies the components. */
    public FakeInstanceContext {
        profiles = List.copyOf(profiles);
    }

    /**
     * Creates the context of an instance on the CPU.
     *
     * @param name the name of the instance
     */
    public FakeInstanceContext(String name) {
        this(name, Device.CPU, List.of());
    }
}
