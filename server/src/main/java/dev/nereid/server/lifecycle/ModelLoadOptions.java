package dev.nereid.server.lifecycle;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.admission.LoadLimits;
import dev.nereid.server.instance.InstanceOptions;

/**
 * Options of model loading. Immutable.
 *
 * @param autoComplete whether backends complete configurations from the models' files
 * @param configName the name of a configuration in each model's {@code configs/} that goes first; empty for none
 * @param threads how many models are loaded at a time, at least 1
 * @param instances how their instances are created
 * @param limits how many calls, and how many bytes of their inputs, each version of a model takes at a time
 */
public record ModelLoadOptions(
        boolean autoComplete, String configName, int threads, InstanceOptions instances, LoadLimits limits) {
    /** Checks the components. */
    public ModelLoadOptions {
        requireNonNull(configName, "configName");
        requireNonNull(instances, "instances");
        requireNonNull(limits, "limits");
        if (threads < 1) {
            throw new IllegalArgumentException("threads: " + threads + " (expected: >= 1)");
        }
    }
}
