package dev.nereid.server.lifecycle;

import dev.nereid.spi.Device;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import java.nio.file.Path;
import java.util.List;

/** One model version, as its backend sees it. Immutable. */
record VersionContext(
        ModelSettings settings,
        Path modelDirectory,
        Path versionDirectory,
        List<Device> instances,
        System.Logger logger)
        implements ModelContext {
    VersionContext {
        instances = List.copyOf(instances);
    }
}
