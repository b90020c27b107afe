package dev.nereid.server.lifecycle;

import dev.nereid.api.parameter.ModelParameters;
import dev.nereid.server.files.VersionFiles;
import dev.nereid.spi.Device;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.ModelClient;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import java.nio.file.Path;
import java.util.Collection;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.Executor;

/** One model version, as its backend sees it. Immutable but for the record of its reads. */
record VersionContext(
        ModelSettings settings,
        ModelParameters parameters,
        Path modelDirectory,
        Path versionDirectory,
        List<Device> instances,
        System.Logger logger,
        Optional<ModelClient> client,
        VersionFiles files,
        Executor executor,
        Metrics metrics)
        implements ModelContext {
    VersionContext {
        instances = List.copyOf(instances);
    }

    @Override
    public Path privateFiles(Path directory, Collection<String> files) {
        return this.files.copy(directory, files);
    }

    @Override
    public ModelClient models() {
        return client.orElseGet(ModelContext.super::models);
    }
}
