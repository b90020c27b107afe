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
 * @param pluginLimits the limits of plugins
 */
public record SupervisionOptions(
        Duration executionLimit, Duration loadLimit, FatalErrorHandler fatalErrors, PluginLimits pluginLimits) {
    /** The defaults of the command line, without a handler of fatal errors. */
    public static final SupervisionOptions DEFAULT =
            new SupervisionOptions(Duration.ofSeconds(30), Duration.ofMinutes(5), FatalErrorHandler.NONE);

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
        /** The defaults of the command line. */
        public static final PluginLimits DEFAULT = new PluginLimits(256, 256);

        /**
         * Creates limits of a server, which passes outputs on that do not fit the configuration.
         *
         * @param threads as of {@link #threads()}
         * @param outputCheckInterval as of {@link #outputCheckInterval()}
         */
        public PluginLimits(int threads, int outputCheckInterval) {
            this(threads, outputCheckInterval, false);
        }

        /**
         * Returns the same limits with another treatment of outputs that do not fit the configuration.
         *
         * @param strict whether they fail their request
         * @return the changed limits
         */
        public PluginLimits withStrictOutputs(boolean strict) {
            return new PluginLimits(threads, outputCheckInterval, strict);
        }

        /** Checks the components. */
        public PluginLimits {
            requireNotNegative("threads", threads);
            requireNotNegative("outputCheckInterval", outputCheckInterval);
        }
    }

    /**
     * Creates options with the default limits of plugins.
     *
     * @param executionLimit the duration after which an execution is reported; zero for never
     * @param loadLimit the duration after which a load is reported; zero for never
     * @param fatalErrors notified of exhausted heap, metaspace and threads
     */
    public SupervisionOptions(Duration executionLimit, Duration loadLimit, FatalErrorHandler fatalErrors) {
        this(executionLimit, loadLimit, fatalErrors, PluginLimits.DEFAULT);
    }

    /**
     * Returns the same options with other limits of plugins.
     *
     * @return the changed options
     */
    public SupervisionOptions withPluginLimits(PluginLimits changed) {
        return new SupervisionOptions(executionLimit, loadLimit, fatalErrors, changed);
    }

    /** Checks the components. */
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
