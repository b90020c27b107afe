package dev.nereid.testkit;

import dev.nereid.api.parameter.BackendParameters;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.Parameters;
import java.nio.file.Path;
import java.util.Map;

/**
 * A {@link BackendContext} for tests of backends. Immutable but for its log.
 *
 * @param pluginDirectory the directory of its jars, or the one that it runs
 * @param cacheDirectory the directory to which it may write
 * @param processors the number of processors it may use
 * @param environment the environment variables for processes
 */
public record FakeBackendContext(
        String name,
        Parameters settings,
        Path pluginDirectory,
        Path cacheDirectory,
        int processors,
        RecordedLog logger,
        Map<String, String> environment)
        implements BackendContext {
    /** Copies the variables. */
    public FakeBackendContext {
        environment = Map.copyOf(environment);
    }

    /**
     * Creates the context of a backend with the name {@code backend}.
     *
     * @param settings the settings of the backend, as of {@code --backend-config}
     * @param directory the directory to which it may write
     * @param processors the number of processors it may use
     */
    public FakeBackendContext(Map<String, String> settings, Path directory, int processors) {
        this(
                "backend",
                BackendParameters.of("backend", settings),
                directory,
                directory,
                processors,
                new RecordedLog(),
                Map.of());
    }

    /**
     * Replaces the environment variables for processes; there are none by default.
     *
     * @return the changed context, with the same log
     */
    public FakeBackendContext withEnvironment(Map<String, String> variables) {
        return new FakeBackendContext(name, settings, pluginDirectory, cacheDirectory, processors, logger, variables);
    }

    /**
     * Returns metrics that are counted. Metrics that cannot be are recorded in the log as warnings.
     *
     * @return the metrics, the same at every call
     */
    @Override
    public Metrics metrics() {
        return logger.metrics();
    }
}
