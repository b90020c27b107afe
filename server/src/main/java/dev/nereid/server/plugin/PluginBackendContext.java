package dev.nereid.server.plugin;

import dev.nereid.spi.BackendContext;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Map;

/** What one backend may use of the server. Immutable. */
final class PluginBackendContext implements BackendContext {
    private final PluginSource plugin;
    private final PluginEnvironment environment;
    private final Map<String, String> settings;
    private final System.Logger logger;

    PluginBackendContext(String backend, PluginSource plugin, PluginEnvironment environment) {
        this.plugin = plugin;
        this.environment = environment;
        settings = environment.settingsOf(backend);
        logger = new PluginLogger(backend);
    }

    @Override
    public Map<String, String> settings() {
        return settings;
    }

    @Override
    public Path pluginDirectory() {
        return plugin.directory();
    }

    /** Hashes the jars only when asked to: most backends have nothing to unpack. */
    @Override
    public Path cacheDirectory() {
        try {
            String content = plugin.name() + "-" + PluginContent.hash(plugin.jars());
            return Files.createDirectories(environment.cacheRoot().resolve(content));
        } catch (IOException e) {
            throw new UncheckedIOException(
                    "cache directory: cannot be made in " + environment.cacheRoot() + ": " + e.getMessage(), e);
        }
    }

    @Override
    public int processors() {
        return environment.processors();
    }

    @Override
    public System.Logger logger() {
        return logger;
    }
}
