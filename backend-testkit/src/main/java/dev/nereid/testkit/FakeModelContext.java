package dev.nereid.testkit;

import dev.nereid.spi.Device;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import java.nio.file.Path;
import java.util.List;

/**
 * A {@link ModelContext} for tests of backends. Immutable but for its log.
 *
 * @param settings its configuration
 * @param modelDirectory its folder
 * @param versionDirectory the folder of the version
 * @param instances where instances will be made
 * @param logger its log
 */
public record FakeModelContext(
        ModelSettings settings, Path modelDirectory, Path versionDirectory, List<Device> instances, RecordedLog logger)
        implements ModelContext {
    /** Copies the components. */
    public FakeModelContext {
        instances = List.copyOf(instances);
    }

    /**
     * Creates a version of a model with one instance on the processor.
     *
     * @param settings its configuration
     * @param modelDirectory its folder, with the version's folder in it
     */
    public FakeModelContext(ModelSettings settings, Path modelDirectory) {
        this(
                settings,
                modelDirectory,
                modelDirectory.resolve(Long.toString(settings.version())),
                List.of(Device.CPU),
                new RecordedLog());
    }
}
