package dev.nereid.server.repository;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.LoadLimits;
import dev.nereid.server.host.HostPolicies;
import java.util.List;

/**
 * How models are loaded. Immutable.
 *
 * @param autoComplete whether backends complete configurations from the models' files
 * @param configName the name of a configuration in each model's {@code configs/} that goes first; empty for none
 * @param threads how many models are loaded at a time, at least 1
 * @param processors how many processors the instances of one model may be made on, at least 1
 * @param gpus the numbers of the graphics processors that instances may run on
 * @param parallelInstances whether the instances of a model are made at once also where their backend does not say that
 *     this is safe
 * @param hostPolicies where the threads of instances run
 * @param limits how many calls, and how many bytes of their inputs, each version of a model takes at a time
 */
public record LoadOptions(
        boolean autoComplete,
        String configName,
        int threads,
        int processors,
        List<Integer> gpus,
        boolean parallelInstances,
        HostPolicies hostPolicies,
        LoadLimits limits) {
    /** Checks and copies the components. */
    public LoadOptions {
        requireNonNull(configName, "configName");
        requireNonNull(hostPolicies, "hostPolicies");
        gpus = List.copyOf(gpus);
        requireNonNull(limits, "limits");
        if (threads < 1) {
            throw new IllegalArgumentException("threads: " + threads + " (expected: >= 1)");
        }
        if (processors < 1) {
            throw new IllegalArgumentException("processors: " + processors + " (expected: >= 1)");
        }
    }
}
