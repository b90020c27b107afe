package dev.nereid.testkit;

import dev.nereid.spi.Device;
import dev.nereid.spi.InstanceContext;
import java.util.List;

/**
 * An {@link InstanceContext} for tests of backends. Immutable.
 *
 * @param name its name
 * @param device where it runs
 * @param profiles its optimization profiles
 */
public record FakeInstanceContext(String name, Device device, List<String> profiles) implements InstanceContext {
    /** Copies the components. */
    public FakeInstanceContext {
        profiles = List.copyOf(profiles);
    }

    /**
     * Creates the place of an instance on the processor.
     *
     * @param name its name
     */
    public FakeInstanceContext(String name) {
        this(name, Device.CPU, List.of());
    }
}
