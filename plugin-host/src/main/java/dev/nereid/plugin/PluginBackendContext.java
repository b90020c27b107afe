package dev.nereid.plugin;

import dev.nereid.api.Spelling;
import dev.nereid.api.parameter.BackendParameters;
import dev.nereid.api.parameter.ModelParameters;
import dev.nereid.plugin.jar.PluginSource;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.Metrics;
import dev.nereid.spi.Parameters;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/** Services of the server for one backend. Safe for use by any thread; its backend may have asked for a cache directory. */
final class PluginBackendContext implements BackendContext {
    private static final Logger LOG = LoggerFactory.getLogger(PluginBackendContext.class);

    /** The setting that the server gives to every backend, whether it reads it or not. */
    private static final String MAX_BATCH_SIZE = "default-max-batch-size";

    private static final String DEFAULT_MAX_BATCH_SIZE = "4";

    private final String name;
    private final PluginSource plugin;
    private final Path directory;
    private final String digest;
    private final PluginEnvironment environment;
    private final ModelParameters settings;
    private final AtomicBoolean areSettingsChecked = new AtomicBoolean();
    private final System.Logger logger;
    private final Metrics metrics;
    private volatile boolean hasCacheDirectory;

    /**
     * Creates the services.
     *
     * @param directory the directory of the plugin, or one that it runs as a backend
     * @param digest the digest of the plugin's jars, which names its cache directory
     */
    PluginBackendContext(
            String backend, PluginSource plugin, Path directory, String digest, PluginEnvironment environment) {
        this.name = backend;
        this.plugin = plugin;
        this.directory = directory;
        this.digest = digest;
        this.environment = environment;
        settings = ModelParameters.of(BackendParameters.of(backend, withDefaults(environment.settingsOf(backend))));
        logger = new PluginLogger(backend);
        metrics = Metrics.unpublished(logger);
    }

    /** Adds the server's defaults for every backend; scripts search the log for this wording. */
    private static Map<String, String> withDefaults(Map<String, String> settings) {
        String configured = settings.get(MAX_BATCH_SIZE);
        if (configured != null) {
            LOG.debug("Found overwritten default setting: {},{}", MAX_BATCH_SIZE, configured);
            return settings;
        }
        LOG.debug("Adding default backend config setting: {},{}", MAX_BATCH_SIZE, DEFAULT_MAX_BATCH_SIZE);
        Map<String, String> all = new HashMap<>(settings);
        all.put(MAX_BATCH_SIZE, DEFAULT_MAX_BATCH_SIZE);
        return all;
    }

    @Override
    public String name() {
        return name;
    }

    @Override
    public Parameters settings() {
        return settings;
    }

    /**
     * Returns warnings of the backend's settings that are probably misspelt, and records no more which are read. Later calls
     * return none.
     */
    List<String> misspeltSettings() {
        if (areSettingsChecked.getAndSet(true)) {
            return List.of();
        }
        settings.endRecording();
        return misspelt(
                settings, environment.settings().getOrDefault(name, Map.of()).keySet());
    }

    /**
     * Describes settings of a backend that were never read, though their names resemble read ones.
     *
     * @param settings the settings of the backend, with the names that were read
     * @param own the names of settings for this backend; other settings are for all backends, which need not read them
     * @return a warning for each, by their names
     */
    static List<String> misspelt(ModelParameters settings, Set<String> own) {
        Set<String> known = new TreeSet<>(settings.read());
        known.add(MAX_BATCH_SIZE);
        List<String> warnings = new ArrayList<>();
        for (String name : settings.unread()) {
            if (own.contains(name) && !known.contains(name)) {
                Spelling.closest(name, known)
                        .ifPresent(meant -> warnings.add(settings.label(name)
                                + ": unknown setting has no effect; did you mean '" + meant + "'?"));
            }
        }
        return warnings;
    }

    @Override
    public Path pluginDirectory() {
        return directory;
    }

    /** Creates the directory on demand only: most backends have nothing to unpack. */
    @Override
    public Path cacheDirectory() {
        try {
            Path directory = Files.createDirectories(cache());
            hasCacheDirectory = true;
            if (!Files.isWritable(directory) && isEmpty(directory)) {
                throw new AccessDeniedException(directory.toString());
            }
            return directory;
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "cache directory: cannot be created in " + environment.cacheRoot() + ": " + e.getMessage()
                            + " (expected: a directory that can be written; set another one by --plugin-cache-directory"
                            + " or NEREID_PLUGIN_CACHE_DIRECTORY)",
                    e);
        }
    }

    /**
     * Returns why a backend that has failed to load a library could not do so: its cache directory is on a file system that
     * executes nothing. The loader of libraries says only that it cannot open the file.
     *
     * @return the reason, without the path, which the log has; empty if this is not the reason
     */
    Optional<String> obstacle() {
        if (!hasCacheDirectory || mayExecute(cache())) {
            return Optional.empty();
        }
        LOG.atError()
                .addKeyValue("plugin", plugin.name())
                .addKeyValue("directory", environment.cacheRoot())
                .log(
                        "cache directory is on a file system that is mounted noexec: no library can be loaded from it (plugin '{}', {})",
                        plugin.name(),
                        environment.cacheRoot());
        return Optional.of(
                "the cache directory is on a file system that is mounted noexec (expected: one that may execute;"
                        + " mount it with exec, in a container by --tmpfs /tmp:exec, or set another directory by"
                        + " --plugin-cache-directory or NEREID_PLUGIN_CACHE_DIRECTORY)");
    }

    private Path cache() {
        return environment.cacheRoot().resolve(plugin.name() + "-" + digest);
    }

    /** Returns whether a file in a directory can be executed. It can not if its file system is mounted noexec. */
    private static boolean mayExecute(Path directory) {
        try {
            Path probe = Files.createTempFile(directory, "probe", "");
            try {
                return !probe.toFile().setExecutable(true) || Files.isExecutable(probe);
            } finally {
                Files.deleteIfExists(probe);
            }
        } catch (IOException e) {
            return true; // not known, as where the files were unpacked by another user
        }
    }

    /** Returns whether a directory is empty. Files unpacked before may be used by a process that cannot write. */
    private static boolean isEmpty(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.findAny().isEmpty();
        }
    }

    @Override
    public int processors() {
        return environment.processors();
    }

    @Override
    public Map<String, String> environment() {
        return environment.variables();
    }

    @Override
    public System.Logger logger() {
        return logger;
    }

    @Override
    public Metrics metrics() {
        return metrics;
    }
}
