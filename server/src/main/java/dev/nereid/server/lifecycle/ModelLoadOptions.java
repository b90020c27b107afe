package dev.nereid.server.lifecycle;

import static java.util.Objects.requireNonNull;

import dev.nereid.scheduler.admission.AdmissionLimits;
import dev.nereid.server.instance.InstanceOptions;
import dev.nereid.spi.BackendException;
import java.util.function.BiConsumer;
import java.util.function.Supplier;

/**
 * Options of model loading. Immutable.
 *
 * @param autoComplete whether backends complete configurations from the models' files
 * @param configName the name of a configuration in each model's {@code configs/} that takes precedence over
 *     {@code config.pbtxt}, without {@code .pbtxt}; empty for none
 * @param loadThreads how many models are loaded at a time, at least 1
 * @param instances how their instances are created
 * @param limits the limits of requests in flight and their input bytes for each version of a model
 * @param warnings receives the name of a model, empty for none, and a probable mistake in it or in a backend; called by
 *     any thread
 * @param observer observes completions and loads
 */
public record ModelLoadOptions(
        boolean autoComplete,
        String configName,
        int loadThreads,
        InstanceOptions instances,
        AdmissionLimits limits,
        BiConsumer<String, String> warnings,
        LoadObserver observer) {
    /** Observes completions and loads of models by their backends. Safe for use by any thread. */
    public interface LoadObserver {
        /** Observes nothing. */
        LoadObserver NONE = new LoadObserver() {
            @Override
            public <T> T observe(String model, String backend, Work work, Supplier<T> execution) {
                return execution.get();
            }
        };

        /** The kind of a backend's work for a model. */
        enum Work {
            /** Completes the configuration. */
            COMPLETION,
            /** Loads the model with its instances. */
            LOAD
        }

        /**
         * Executes a work of a backend on the calling thread. The first work of a backend creates it, and loads its
         * library.
         *
         * @param execution executes it, once
         * @param <T> the type of the result
         * @throws BackendException to refuse the work, with the reason; the execution may throw it too
         */
        <T> T observe(String model, String backend, Work work, Supplier<T> execution);
    }

    public ModelLoadOptions {
        requireNonNull(configName, "configName");
        requireNonNull(instances, "instances");
        requireNonNull(limits, "limits");
        requireNonNull(warnings, "warnings");
        requireNonNull(observer, "observer");
        if (configName.contains("/") || configName.contains("\\") || configName.contains("..")) {
            throw new IllegalArgumentException("--model-config-name: '" + configName
                    + "' (expected: the name of a file in configs/, without '/', '\\' and '..')");
        }
        if (loadThreads < 1) {
            throw new IllegalArgumentException("loadThreads: " + loadThreads + " (expected: >= 1)");
        }
    }
}
