package dev.nereid.plugin.jar;

import static java.util.Objects.requireNonNull;

import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The threads that a plugin has started. Immutable.
 *
 * @param plugin the name of the plugin; empty for none
 * @param count the number of its platform threads at the last check of the watchdog
 * @param tooMany whether they reach the limit of the server
 */
public record PluginThreads(String plugin, int count, boolean tooMany) {
    /** No plugin and no threads. */
    public static final PluginThreads NONE = new PluginThreads("", 0, false);

    public PluginThreads {
        requireNonNull(plugin, "plugin");
    }

    public static PluginThreads of(String plugin, ClassLoader loader) {
        return loader instanceof PluginClassLoader counting
                ? new PluginThreads(plugin, counting.threads(), counting.hasTooManyThreads())
                : new PluginThreads(plugin, 0, false);
    }

    /**
     * Finds the plugin that a class loader is of.
     *
     * @param loader a class loader; {@code null} for the class loader of the JDK
     * @return the name of the plugin; empty for a class loader of none
     */
    public static Optional<String> pluginOf(@Nullable ClassLoader loader) {
        return loader instanceof PluginClassLoader of ? Optional.of(of.plugin()) : Optional.empty();
    }

    /** Describes the problem with the threads in one line; empty if there are not too many. */
    public String problem() {
        return tooMany
                ? "plugin '" + plugin + "' has started " + count + " threads and not ended them"
                        + " (expected: fewer than --plugin-thread-limit)"
                : "";
    }
}
