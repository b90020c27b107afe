package dev.nereid.plugin;

import dev.nereid.plugin.jar.JarCopies;
import dev.nereid.plugin.jar.SpiVersion;
import java.nio.file.Path;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;

/**
 * Settings, directories and limits that the server passes to plugins. Immutable.
 *
 * @param spi the version of the SPI that plugins are checked against
 * @param settings the settings of the command line by backend; settings for all backends are under an empty name
 * @param cacheRoot the directory of the plugins' cache directories; created when first needed
 * @param processors the processors that backends may use
 * @param variables the environment variables that backends pass to processes
 */
public record PluginEnvironment(
        SpiVersion spi,
        Map<String, Map<String, String>> settings,
        Path cacheRoot,
        int processors,
        Map<String, String> variables) {
    /** The name under which the settings for all backends are kept. */
    public static final String ALL_BACKENDS = "";

    public PluginEnvironment {
        Map<String, Map<String, String>> copy = new HashMap<>();
        settings.forEach((backend, values) -> copy.put(backend, Map.copyOf(values)));
        settings = Map.copyOf(copy);
        variables = Map.copyOf(variables);
        if (processors < 1) {
            throw new IllegalArgumentException("processors: " + processors + " (expected: >= 1)");
        }
    }

    JarCopies copies() {
        return new JarCopies(cacheRoot);
    }

    /** Removes copies of jars, and cache directories, of plugins that no process has used for some time. Blocks. */
    public void removeLeftovers(Instant now) {
        copies().removeLeftovers(now);
    }

    /** Returns the settings of one backend, which override the settings of all backends. */
    Map<String, String> settingsOf(String backend) {
        Map<String, String> merged = new HashMap<>(settings.getOrDefault(ALL_BACKENDS, Map.of()));
        merged.putAll(settings.getOrDefault(backend, Map.of()));
        return Map.copyOf(merged);
    }
}
