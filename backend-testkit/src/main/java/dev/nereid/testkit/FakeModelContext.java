package dev.nereid.testkit;

import dev.nereid.spi.Device;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import java.nio.file.Path;
import java.util.List;

/**
 * A {@link ModelContext} for tests of backends. Immutable but for its log.
 *
 * @param settings the configuration of the model
 * @param modelDirectory the directory of the model
 * @param versionDirectory the directory of the version
 * @param instances the devices of the instances
 * @param logger the log of the model
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
     * @param settings the configuration of the model
     * @param modelDirectory the directory of the model, which contains that of the version
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
