package dev.nereid.testkit;

import dev.nereid.spi.BackendContext;
import java.nio.file.Path;
import java.util.Map;

/**
 * A {@link BackendContext} for tests of backends. Immutable but for its log.
 *
 * @param settings the settings of the backend
 * @param pluginDirectory the directory of its jars
 * @param cacheDirectory the directory to which it may write
 * @param processors the number of processors it may use
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
     * Creates the context of a backend.
     *
     * @param settings the settings of the backend
     * @param directory the directory to which it may write
     * @param processors the number of processors it may use
     */
    public FakeBackendContext(Map<String, String> settings, Path directory, int processors) {
        this(settings, directory, directory, processors, new RecordedLog());
    }
}
