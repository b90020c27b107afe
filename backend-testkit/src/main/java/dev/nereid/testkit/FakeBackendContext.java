package dev.nereid.testkit;

import dev.nereid.spi.BackendContext;
import java.nio.file.Path;
import java.util.Map;

/**
 * A {@link BackendContext} for tests of backends. Immutable but for its log.
 *
 * @param settings the settings of the backend
 * @param pluginDirectory where its jars would lie
 * @param cacheDirectory where it may write
 * @param processors how many processors it may use
 * @param logger its log
 */
public record FakeBackendContext(
        Map<String, String> settings, Path pluginDirectory, Path cacheDirectory, int processors, RecordedLog logger)
        implements BackendContext {
    /** Copies the components. */
    public FakeBackendContext {
        settings = Map.copyOf(settings);
    }

    /**
     * Creates the surroundings of a backend.
     *
     * @param settings the settings of the backend
     * @param directory where it may write
     * @param processors how many processors it may use
     */
    public FakeBackendContext(Map<String, String> settings, Path directory, int processors) {
        this(settings, directory, directory, processors, new RecordedLog());
    }
}
