package dev.nereid.server.options;

import static java.util.Objects.requireNonNull;

import dev.nereid.api.FatalErrorHandler;
import java.time.Duration;

/**
 * Options of fatal error handling and of the execution and load watchdogs. Immutable.
 *
 * @param executionLimit the duration after which an execution is reported, unless the model sets another one by its
 *     parameter {@code execution_watchdog_secs}; zero for never
 * @param loadLimit the duration after which the load of a model version, or an execution of its warm-up, is reported;
 *     zero for never
 * @param fatalErrors notified of exhausted heap, metaspace and threads, on the thread that noticed. The server is
 *     not live and not ready from then on, and refuses requests until it is closed
 */
public record SupervisionOptions(
        Duration executionLimit, Duration loadLimit, FatalErrorHandler fatalErrors, PluginLimits pluginLimits) {
    /**
     * Limits of plugins. Immutable.
     *
     * @param threads the number of platform threads of one plugin from which on its models are not ready; 0 for none
     * @param outputCheckInterval one response in this many is checked for outputs that the backend changes after it
     *     passed them to the server; 0 for none, 1 for all
     * @param strictOutputs whether outputs that do not fit the configuration fail their request, for tests of models;
     *     otherwise they are passed on or dropped, and logged once for each model and output
     */
    public record PluginLimits(int threads, int outputCheckInterval, boolean strictOutputs) {
        public PluginLimits {
            requireNotNegative("threads", threads);
            requireNotNegative("outputCheckInterval", outputCheckInterval);
        }
    }

    public SupervisionOptions {
        requireNonNull(fatalErrors, "fatalErrors");
        requireNonNull(pluginLimits, "pluginLimits");
        requireNotNegative("executionLimit", executionLimit);
        requireNotNegative("loadLimit", loadLimit);
    }

    private static void requireNotNegative(String name, int value) {
        if (value < 0) {
            throw new IllegalArgumentException(name + ": " + value + " (expected: 0 or more)");
        }
    }

    private static void requireNotNegative(String name, Duration limit) {
        if (limit.isNegative()) {
            throw new IllegalArgumentException(name + ": " + limit + " (expected: 0 or more)");
        }
    }
}
