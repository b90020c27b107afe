package dev.nereid.server.lifecycle;

import dev.nereid.spi.Device;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import java.nio.file.Path;
import java.util.List;
import java.util.Optional;

/** One model version, as its backend sees it. Immutable. */
record VersionContext(
        ModelSettings settings,
        Path modelDirectory,
        Path versionDirectory,
        List<Device> instances,
        System.Logger logger,
        Optional<ModelClient> client)
        implements ModelContext {
    VersionContext {
        instances = List.copyOf(instances);
    }

    @Override
    public ModelClient models() {
        return client.orElseThrow(() -> new UnsupportedOperationException(
                "models: not available while a configuration is completed (expected: in load, or later)"));
    }
}
