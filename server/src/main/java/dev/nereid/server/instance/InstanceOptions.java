package dev.nereid.server.instance;

import static java.util.Objects.requireNonNull;

import dev.nereid.server.host.HostPolicies;
import java.util.Arrays;
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
    /** All processors that this process may use, no GPU and no host policies. */
    public static final InstanceOptions DEFAULT =
            new InstanceOptions(Runtime.getRuntime().availableProcessors(), List.of(), false, HostPolicies.NONE);

    public InstanceOptions {
        gpus = List.copyOf(gpus);
        requireNonNull(hostPolicies, "hostPolicies");
        requireNonNull(gpuLimits, "gpuLimits");
        if (processors < 1) {
            throw new IllegalArgumentException("processors: " + processors + " (expected: >= 1)");
        }
    }

    /**
     * Creates options without limits of the memory of GPUs.
     *
     * @param processors the processors that backends may use, at least 1
     * @param gpus the numbers of the graphics processors that instances may run on
     * @param parallel whether instances are created in parallel whatever their backend declares
     * @param hostPolicies the processors that the threads of instances run on
     */
    public InstanceOptions(int processors, List<Integer> gpus, boolean parallel, HostPolicies hostPolicies) {
        this(processors, gpus, parallel, hostPolicies, GpuLoadLimits.NONE);
    }

    /**
     * Replaces the processors that backends may use.
     *
     * @param number at least 1
     */
    public InstanceOptions withProcessors(int number) {
        return new InstanceOptions(number, gpus, parallel, hostPolicies, gpuLimits);
    }

    /** Replaces the graphics processors that instances may run on. */
    public InstanceOptions withGpus(int... numbers) {
        return new InstanceOptions(
                processors, Arrays.stream(numbers).boxed().toList(), parallel, hostPolicies, gpuLimits);
    }

    /**
     * Replaces whether instances are created in parallel whatever their backend declares.
     *
     * @param always {@code true} to create them in parallel
     */
    public InstanceOptions withParallel(boolean always) {
        return new InstanceOptions(processors, gpus, always, hostPolicies, gpuLimits);
    }

    public InstanceOptions withHostPolicies(HostPolicies policies) {
        return new InstanceOptions(processors, gpus, parallel, policies, gpuLimits);
    }

    /** Replaces the limits of the memory of GPUs. */
    public InstanceOptions withGpuLimits(GpuLoadLimits limits) {
        return new InstanceOptions(processors, gpus, parallel, hostPolicies, limits);
    }
}
