package dev.nereid.server.lifecycle;

import dev.nereid.server.config.ExecutionLimitReader;
import dev.nereid.server.config.Spelling;
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
import java.util.Set;
import java.util.TreeSet;

/** One model version, as its backend sees it. Immutable. */
record VersionContext(
        ModelSettings settings,
        Path modelDirectory,
        Path versionDirectory,
        List<Device> instances,
        System.Logger logger,
        Optional<ModelClient> client,
        VersionFiles files,
        Metrics metrics)
        implements ModelContext {
    VersionContext {
        instances = List.copyOf(instances);
    }

    @Override
    public void declareParameters(Collection<String> names) {
        if (instances.isEmpty()) {
            return; // The configuration is only completed; the load follows.
        }
        Set<String> known = new TreeSet<>(names);
        known.add(ExecutionLimitReader.PARAMETER);
        settings.parameters().keySet().stream()
                .sorted()
                .filter(parameter -> !isKnown(parameter, known))
                .forEach(parameter -> Spelling.closest(parameter, known)
                        .ifPresent(name -> logger.log(
                                System.Logger.Level.WARNING,
                                "unknown parameter '" + parameter + "' has no effect; did you mean '" + name + "'?")));
    }

    private static boolean isKnown(String parameter, Set<String> known) {
        return known.contains(parameter)
                || known.stream().anyMatch(name -> name.endsWith(".") && parameter.startsWith(name));
    }

    @Override
    public Path privateFiles(Path directory, Collection<String> files) {
        return this.files.copy(directory, files);
    }

    @Override
    public ModelClient models() {
        return client.orElseThrow(() -> new UnsupportedOperationException(
                "models: not available while a configuration is completed (expected: in load, or later)"));
    }
}
