package dev.nereid.server.instance;

import static java.util.Objects.requireNonNull;

import dev.nereid.server.host.HostPolicies;
import java.util.List;

/**
 * Options of instance creation. Immutable.
 *
 * @param processors the processors that backends may use, at least 1; as many instances of one model may be created at a
 *     time
 * @param gpus the numbers of the graphics processors that instances may run on
 * @param parallel whether the instances of a model are created in parallel also if their backend does not declare that
 *     as safe
 * @param hostPolicies the processors that the threads of instances run on
 * @param gpuLimits the limits of the memory of GPUs that is in use after a load
 */
public record InstanceOptions(
        int processors, List<Integer> gpus, boolean parallel, HostPolicies hostPolicies, GpuLoadLimits gpuLimits) {
    public InstanceOptions {
        gpus = List.copyOf(gpus);
        requireNonNull(hostPolicies, "hostPolicies");
        requireNonNull(gpuLimits, "gpuLimits");
        if (processors < 1) {
            throw new IllegalArgumentException("processors: " + processors + " (expected: >= 1)");
        }
    }
}
