package dev.nereid.server.instance;

import static java.util.Objects.requireNonNull;

import dev.nereid.server.host.HostPolicies;
import java.util.List;

/**
 * Options of instance creation. Immutable.
 *
 * @param processors how many instances of one model may be created at a time, at least 1
 * @param gpus the numbers of the graphics processors that instances may run on
 * @param parallel whether the instances of a model are created in parallel also if their backend does not declare that
 *     as safe
 * @param hostPolicies where the threads of instances run
 */
public record InstanceOptions(int processors, List<Integer> gpus, boolean parallel, HostPolicies hostPolicies) {
    /** Checks and copies the components. */
    public InstanceOptions {
        gpus = List.copyOf(gpus);
        requireNonNull(hostPolicies, "hostPolicies");
        if (processors < 1) {
            throw new IllegalArgumentException("processors: " + processors + " (expected: >= 1)");
        }
    }
}
