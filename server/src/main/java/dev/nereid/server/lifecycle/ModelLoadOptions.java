package dev.nereid.server.lifecycle;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.server.instance.InstanceOptions;
import java.util.function.BiConsumer;
import java.util.function.UnaryOperator;

/**
 * Options of model loading. Immutable.
 *
 * @param autoComplete whether backends complete configurations from the models' files
 * @param configName the name of a configuration in each model's {@code configs/} that takes precedence over
 *     {@code config.pbtxt}, without {@code .pbtxt}; empty for none
 * @param loadThreads how many models are loaded at a time, at least 1
 * @param instances how their instances are created
 * @param limits the limits of requests in flight and their input bytes for each version of a model
 * @param warnings receives the name of a model, empty for none, and what is probably not as intended about it, or about
 *     a backend; called by any thread
 */
public record ModelLoadOptions(
        boolean autoComplete,
        String configName,
        int loadThreads,
        InstanceOptions instances,
        AdmissionLimits limits,
        BiConsumer<String, String> warnings) {
    /** The defaults of the command line. */
    public static final ModelLoadOptions DEFAULT =
            new ModelLoadOptions(true, "", 4, InstanceOptions.DEFAULT, AdmissionLimits.NONE, (_, _) -> {});

    /** Checks the components. */
    public ModelLoadOptions {
        requireNonNull(configName, "configName");
        requireNonNull(instances, "instances");
        requireNonNull(limits, "limits");
        requireNonNull(warnings, "warnings");
        if (configName.contains("/") || configName.contains("\\") || configName.contains("..")) {
            throw new IllegalArgumentException("--model-config-name: '" + configName
                    + "' (expected: the name of a file in configs/, without '/', '\\' and '..')");
        }
        if (loadThreads < 1) {
            throw new IllegalArgumentException("loadThreads: " + loadThreads + " (expected: >= 1)");
        }
    }

    /**
     * Replaces whether backends complete configurations.
     *
     * @param complete {@code true} to complete them
     * @return the changed options
     */
    public ModelLoadOptions withAutoComplete(boolean complete) {
        return new ModelLoadOptions(complete, configName, loadThreads, instances, limits, warnings);
    }

    /**
     * Replaces the name of the configuration that takes precedence.
     *
     * @param name the name; empty for none
     * @return the changed options
     */
    public ModelLoadOptions withConfigName(String name) {
        return new ModelLoadOptions(autoComplete, name, loadThreads, instances, limits, warnings);
    }

    /**
     * Replaces how many models are loaded at a time.
     *
     * @param threads at least 1
     * @return the changed options
     */
    public ModelLoadOptions withLoadThreads(int threads) {
        return new ModelLoadOptions(autoComplete, configName, threads, instances, limits, warnings);
    }

    /**
     * Changes how instances are created.
     *
     * @param change returns the new options for the present ones
     * @return the changed options
     */
    public ModelLoadOptions withInstances(UnaryOperator<InstanceOptions> change) {
        return new ModelLoadOptions(autoComplete, configName, loadThreads, change.apply(instances), limits, warnings);
    }

    /**
     * Replaces the load limits of each version of a model.
     *
     * @param requests the maximum of requests in flight; 0 for none
     * @param bytes the maximum of their input bytes; 0 for none
     * @return the changed options
     */
    public ModelLoadOptions withLimits(long requests, long bytes) {
        return new ModelLoadOptions(
                autoComplete, configName, loadThreads, instances, new AdmissionLimits(requests, bytes), warnings);
    }

    /**
     * Replaces the receiver of warnings about models and backends.
     *
     * @param receiver receives the name of a model, empty for none, and a warning; called by any thread
     * @return the changed options
     */
    public ModelLoadOptions withWarnings(BiConsumer<String, String> receiver) {
        return new ModelLoadOptions(autoComplete, configName, loadThreads, instances, limits, receiver);
    }
}
