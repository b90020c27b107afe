package dev.nereid.server.check;

import dev.nereid.api.InferenceException;
import dev.nereid.api.ModelStatus;
import dev.nereid.plugin.BackendRegistry;
import dev.nereid.plugin.BackendStatus;
import dev.nereid.plugin.PluginEnvironment;
import dev.nereid.plugin.StoragePlugin;
import dev.nereid.plugin.jar.PluginDirectory;
import dev.nereid.plugin.jar.PluginNatives;
import dev.nereid.repository.ModelCopy;
import dev.nereid.repository.ModelLocation;
import dev.nereid.repository.ModelRepository;
import dev.nereid.repository.files.FileCopies;
import dev.nereid.repository.storage.RemoteRepositories;
import dev.nereid.repository.storage.StorageOptions;
import dev.nereid.server.BuildInfo;
import dev.nereid.server.NereidServer;
import dev.nereid.server.check.CheckReport.ModelReport;
import dev.nereid.server.options.ServerOptions;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Checks the models of repositories without serving them. Static functions only; they block.
 *
 * <p>Plugins are opened and closed again. Backends complete configurations, and load models only if that is requested.
 */
public final class RepositoryCheck {
    private static final Logger LOG = LoggerFactory.getLogger(RepositoryCheck.class);

    private RepositoryCheck() {}

    /**
     * Checks models up to their completion by their backends.
     *
     * @param options the options with which the models would be served
     * @throws InferenceException if a repository cannot be read
     */
    public static CheckReport run(ServerOptions options) {
        PluginEnvironment environment = environment(options);
        StorageOptions storages = options.directories().remote();
        try (RemoteRepositories remote = RemoteRepositories.open(
                        storages, StoragePlugin.source(storages.environment(), storages.plugins(), environment));
                FileCopies files = new FileCopies(environment.cacheRoot());
                BackendRegistry backends =
                        BackendRegistry.open(options.directories().plugins(), options.providers(), environment)) {
            files.exempt(remote::contains);
            ModelRepository.Scan scan = new ModelRepository(
                            options.directories().modelRepositories(),
                            remote.roots(),
                            options.directories().hasNamespaces())
                    .scanAll();
            for (String reason : scan.unreachable().values()) {
                throw new InferenceException(ErrorCode.UNAVAILABLE, reason);
            }
            List<ModelReport> models = new ArrayList<>();
            List<BackendStatus> statuses;
            try (ModelCheck check = new ModelCheck(backends, files, options, names(scan))) {
                for (ModelLocation location : scan.models()) {
                    models.add(check(check, location));
                }
                statuses = backends.statuses();
            }
            scan.duplicates().forEach(name -> models.add(duplicate(name, options)));
            models.sort(Comparator.comparing(ModelReport::name));
            return new CheckReport(statuses, models, warnings(options, models.isEmpty()));
        }
    }

    /**
     * Returns whether a check may run code of native libraries, which can end the process. Reads the manifests of the
     * plugins, and loads nothing.
     *
     * @param options the options with which the models would be served
     * @return {@code true} if an installed plugin has native libraries, or says that it binds one
     */
    public static boolean runsLibraries(ServerOptions options) {
        return options.directories().plugins().stream()
                .flatMap(directory -> new PluginDirectory(directory).scan().stream())
                .anyMatch(PluginNatives::runsLibrary);
    }

    private static Set<String> names(ModelRepository.Scan scan) {
        Set<String> names = new HashSet<>(scan.duplicates());
        scan.models().forEach(model -> names.add(model.name()));
        return names;
    }

    private static ModelReport check(ModelCheck check, ModelLocation location) {
        try (ModelCopy copy = location.fetch()) {
            return check.check(copy.directory());
        } catch (InferenceException e) { // of a storage
            return report(location.name(), Path.of(location.name())).withError(e.publicMessage());
        }
    }

    private static ModelReport report(String model, Path file) {
        return new ModelReport(model, file, List.of(), Optional.empty(), List.of(), List.of());
    }

    /**
     * Checks models and loads them, all at once, as a server does.
     *
     * @param options the options with which the models would be served
     * @return the report; an error of a load has no position
     * @throws InferenceException if a repository cannot be read
     * @throws InterruptedException if the thread is interrupted meanwhile; everything was closed again
     */
    public static CheckReport runWithLoads(ServerOptions options) throws InterruptedException {
        CheckReport report = run(options);
        Map<String, Set<String>> warnings = new ConcurrentHashMap<>();
        List<ModelStatus> failures = loadFailures(options.with(changed -> changed.warnings =
                (model, warning) -> warnings.computeIfAbsent(model, _ -> ConcurrentHashMap.newKeySet())
                        .add(warning)));
        List<ModelReport> models = new ArrayList<>();
        for (ModelReport model : report.models()) {
            ModelReport loaded = model.withWarnings(warnings.getOrDefault(model.name(), Set.of()));
            for (ModelStatus failure : failures) {
                if (failure.name().equals(model.name()) && model.isValid()) {
                    loaded = loaded.withError(describe(failure));
                }
            }
            models.add(loaded);
        }
        List<String> general = new ArrayList<>(report.warnings());
        general.addAll(new TreeSet<>(warnings.getOrDefault("", Set.of()))); // of backends
        return new CheckReport(report.backends(), models, general);
    }

    private static List<ModelStatus> loadFailures(ServerOptions options) throws InterruptedException {
        NereidServer server = NereidServer.startLoading(options.with(tolerant -> tolerant.exitOnError = false));
        try {
            server.awaitModels();
            return List.of();
        } catch (InferenceException e) {
            return server.models().index().stream()
                    .filter(status -> status.state() != ModelStatus.State.READY)
                    .toList();
        } finally {
            close(server);
        }
    }

    private static void close(NereidServer server) {
        try {
            server.close();
        } catch (InferenceException e) {
            LOG.atError().setCause(e).log("models could not be closed in time");
        }
    }

    private static String describe(ModelStatus failure) {
        String version =
                failure.version().isPresent() ? "version " + failure.version().getAsLong() + ": " : "";
        return version + failure.reason();
    }

    private static PluginEnvironment environment(ServerOptions options) {
        return new PluginEnvironment(
                BuildInfo.read().spi(),
                options.backendSettings(),
                options.directories().cacheRoot(),
                options.models().instances().processors(),
                options.environment());
    }

    private static ModelReport duplicate(String name, ServerOptions options) {
        List<Path> roots = options.directories().modelRepositories().stream()
                .filter(root -> Files.isDirectory(root.resolve(name)))
                .toList();
        Path file = roots.isEmpty() ? Path.of(name) : roots.getFirst().resolve(name);
        return report(name, file).withError("model appears in two or more repositories: " + roots + " (expected: one)");
    }

    private static List<String> warnings(ServerOptions options, boolean isEmpty) {
        List<String> warnings = new ArrayList<>();
        for (Path root : options.directories().modelRepositories()) {
            if (Files.exists(root.resolve("config.pbtxt"))) {
                warnings.add(root + " contains config.pbtxt, so it seems to be a model"
                        + " (expected: a repository, which contains a directory for each model)");
            }
        }
        if (isEmpty) {
            warnings.add("no models found (expected: a directory for each model)");
        }
        return warnings;
    }
}
