package dev.nereid.server.plugin;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Registers the backends of plugins by name. Owns the plugins and the backends. Immutable but for the backends, each of
 * which is created once, on first use; safe for use by any thread.
 */
public final class BackendRegistry implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BackendRegistry.class);

    private final List<Plugin> plugins = new ArrayList<>();
    private final Map<String, BackendSlot> byName = new LinkedHashMap<>();
    private final Map<String, String> pluginOf = new LinkedHashMap<>();
    private final Map<String, String> nameOfPlatform = new LinkedHashMap<>();
    private final List<BackendStatus> broken = new ArrayList<>();
    private final AtomicBoolean closed = new AtomicBoolean();

    /** Virtual threads: an action of one plugin that blocks nevertheless delays no other. */
    private final ThreadFactory actionThreads = Thread.ofVirtual()
            .name("action/", 0)
            .inheritInheritableThreadLocals(false)
            .factory();

    private BackendRegistry() {}

    /**
     * Loads the plugins of directories. A broken plugin is reported by {@link #statuses()} and otherwise ignored.
     *
     * @param directories existing directories, in the order of their plugins' precedence
     * @param environment the settings and limits of plugins
     * @return the registry
     */
    public static BackendRegistry open(List<Path> directories, PluginEnvironment environment) {
        BackendRegistry registry = new BackendRegistry();
        for (Path directory : directories) {
            for (PluginSource source : new PluginDirectory(directory).scan()) {
                registry.add(source, environment);
            }
        }
        return registry;
    }

    /**
     * Returns a backend, which is created on first use. Blocks while it is being created.
     *
     * @param name the name of the backend in configurations
     * @return the backend, owned by the registry and shared by all models
     * @throws BackendException if there is no such backend, or if it cannot be created; the next call tries again
     */
    public Backend backend(String name) throws BackendException {
        BackendSlot slot = byName.get(name);
        if (slot == null) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "unable to find backend library for backend '" + name
                            + "', try specifying runtime on the model configuration." + brokenPlugin(name));
        }
        return slot.backend();
    }

    /**
     * Returns the executor of a backend's actions that are no executions, such as those of
     * {@link dev.nereid.spi.ResponseSender#onReady}. Each runs on a thread of its own, with the context class loader of
     * the plugin.
     *
     * @param name the name of a backend that exists
     * @return the executor
     */
    public Executor actions(String name) {
        BackendSlot slot = byName.get(name);
        if (slot == null) {
            throw new IllegalArgumentException("backend: '" + name + "' (expected: one of " + byName.keySet() + ")");
        }
        return slot.executor(action -> actionThreads.newThread(action).start());
    }

    /**
     * Finds the backend that a legacy platform means.
     *
     * @param platform the platform
     * @return the name of the backend, or an empty text if there is none
     */
    public String nameOfPlatform(String platform) {
        return nameOfPlatform.getOrDefault(platform, "");
    }

    /**
     * Returns the states of plugins and their backends.
     *
     * @return usable backends first, then broken plugins
     */
    public List<BackendStatus> statuses() {
        List<BackendStatus> all = new ArrayList<>();
        byName.values().forEach(slot -> all.add(slot.status()));
        all.addAll(broken);
        return List.copyOf(all);
    }

    /** Closes the backends, then the plugins, each once. Called after the last model was closed. */
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        List.copyOf(byName.values()).reversed().forEach(BackendSlot::close);
        plugins.reversed().forEach(Plugin::close);
    }

    private void add(PluginSource source, PluginEnvironment environment) {
        try {
            Plugin plugin = Plugin.open(source, environment.spi());
            String duplicate = duplicateName(plugin);
            if (!duplicate.isEmpty()) {
                plugin.close();
                throw new PluginException("backend name: '" + duplicate + "' is the name of a backend of plugin '"
                        + pluginOf.get(duplicate) + "' already (expected: a name of its own)");
            }
            plugins.add(plugin);
            plugin.providers().forEach(entry -> register(entry, source, environment));
        } catch (PluginException e) {
            broken.add(new BackendStatus("", source.name(), BackendStatus.State.BROKEN, e.reason()));
            LOG.atWarn()
                    .addKeyValue("plugin", source.name())
                    .addKeyValue("reason", e.reason())
                    .log("broken plugin ignored");
        }
    }

    private String duplicateName(Plugin plugin) {
        return plugin.providers().stream()
                .map(IsolatedBackendProvider::name)
                .filter(byName::containsKey)
                .findFirst()
                .orElse("");
    }

    private void register(IsolatedBackendProvider entry, PluginSource source, PluginEnvironment environment) {
        byName.put(entry.name(), new BackendSlot(entry, source, environment));
        pluginOf.put(entry.name(), source.name());
        entry.platforms().forEach(platform -> nameOfPlatform.putIfAbsent(platform, entry.name()));
    }

    private String brokenPlugin(String name) {
        return broken.stream()
                .filter(status -> status.plugin().equals(name))
                .findFirst()
                .map(status -> " Plugin '" + name + "' is broken: " + status.reason())
                .orElse("");
    }
}
