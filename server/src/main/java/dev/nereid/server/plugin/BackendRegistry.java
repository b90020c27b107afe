package dev.nereid.server.plugin;

import dev.nereid.server.config.Spelling;
import dev.nereid.server.plugin.jar.PluginDirectory;
import dev.nereid.server.plugin.jar.PluginException;
import dev.nereid.server.plugin.jar.PluginSource;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicReference;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Registers the backends of plugins by name. Owns the plugins and the backends. Safe for use by any thread.
 *
 * <p>The registered plugins are an immutable snapshot that {@link #refresh} replaces as a whole. A plugin and its
 * backends are open while they are leased: {@link BackendSlot} and {@link PluginSlot}.
 */
public final class BackendRegistry implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BackendRegistry.class);

    private final List<Path> directories;
    private final PluginEnvironment environment;
    private final AtomicReference<PluginSnapshot> plugins = new AtomicReference<>(PluginSnapshot.EMPTY);
    private final AtomicBoolean closed = new AtomicBoolean();
    private final Executor actionThreads;

    private BackendRegistry(List<Path> directories, PluginEnvironment environment) {
        this.directories = List.copyOf(directories);
        this.environment = environment;
        // Virtual threads: an action of one plugin that blocks nevertheless delays no other.
        ThreadFactory threads = Thread.ofVirtual()
                .name("action/", 0)
                .inheritInheritableThreadLocals(false)
                .factory();
        actionThreads = action -> threads.newThread(action).start();
    }

    /**
     * Finds the plugins of directories. A broken plugin is reported by {@link #statuses()} and otherwise ignored.
     *
     * @param directories existing directories, in the order of their plugins' precedence
     * @param environment the settings and limits of plugins
     * @return the registry
     */
    public static BackendRegistry open(List<Path> directories, PluginEnvironment environment) {
        BackendRegistry registry = new BackendRegistry(directories, environment);
        registry.refresh();
        return registry;
    }

    /**
     * Looks for plugins again, and adds the new ones. Those that are registered stay as they are, whatever became of
     * their files. Blocks; broken plugins are tried again.
     */
    public void refresh() {
        List<PluginSource> sources = directories.stream()
                .flatMap(directory -> new PluginDirectory(directory).scan().stream())
                .toList();
        plugins.updateAndGet(PluginSnapshot::withoutBroken);
        for (PluginSource source : sources) {
            if (!plugins.get().plugins().containsKey(source.path())) {
                add(source);
            }
        }
    }

    /**
     * Acquires a backend, which is created for its first lease. Blocks while it is being created or closed.
     *
     * @param name the name of the backend in configurations
     * @return a lease on the backend, owned by the caller
     * @throws BackendException if there is no such backend, or if it cannot be created; the next call tries again
     */
    public BackendLease acquire(String name) throws BackendException {
        PluginSnapshot now = plugins.get();
        BackendSlot slot = now.backends().get(name);
        if (slot == null) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "unable to find backend library for backend '" + name
                            + "', try specifying runtime on the model configuration."
                            + now.brokenReason(name)
                            + Spelling.question(name, now.backends().keySet()));
        }
        return slot.acquire();
    }

    /**
     * Acquires the provider of a repository agent. Blocks while its plugin is loaded or closed.
     *
     * @param name the name of the agent in configurations
     * @return a lease on the provider, owned by the caller
     * @throws BackendException if there is no such agent, or if its plugin cannot be loaded
     */
    public AgentLease acquireAgent(String name) throws BackendException {
        PluginSlot plugin = plugins.get().agents().get(name);
        if (plugin == null) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "repository agent '" + name + "': unknown (expected: one of " + agents() + ")");
        }
        return plugin.acquireAgent(name);
    }

    /**
     * Returns the names of the repository agents of plugins.
     *
     * @return the names
     */
    public SortedSet<String> agents() {
        return new TreeSet<>(plugins.get().agents().keySet());
    }

    /**
     * Returns the repository agents with their plugins.
     *
     * @return the names of the plugins by those of the agents
     */
    public SortedMap<String, String> agentPlugins() {
        SortedMap<String, String> all = new TreeMap<>();
        plugins.get().agents().forEach((name, plugin) -> all.put(name, plugin.name()));
        return all;
    }

    /**
     * Finds the backend that a legacy platform means.
     *
     * @param platform the platform
     * @return the name of the backend, or an empty text if there is none
     */
    public String nameOfPlatform(String platform) {
        return plugins.get().platforms().getOrDefault(platform, "");
    }

    /**
     * Returns the states of plugins and their backends. Loads each plugin that is not loaded, for a moment.
     *
     * @return usable backends first, then broken plugins
     */
    public List<BackendStatus> statuses() {
        PluginSnapshot now = plugins.get();
        List<BackendStatus> all = new ArrayList<>();
        now.backends().values().forEach(slot -> all.add(slot.status()));
        all.addAll(now.broken());
        return List.copyOf(all);
    }

    /**
     * Closes the backends, then the plugins, each once. What is still leased is closed with its last lease. Called after
     * the last model was closed.
     */
    @Override
    public void close() {
        if (!closed.compareAndSet(false, true)) {
            return;
        }
        PluginSnapshot now = plugins.get();
        List.copyOf(now.backends().values()).reversed().forEach(BackendSlot::end);
        List.copyOf(now.plugins().values()).reversed().forEach(PluginSlot::end);
    }

    private void add(PluginSource source) {
        PluginSlot plugin = null;
        boolean added = false;
        try {
            plugin = PluginSlot.of(source, environment);
            added = register(plugin, plugin.names());
        } catch (PluginException e) {
            plugins.updateAndGet(now -> now.withBroken(source.name(), e.reason()));
            LOG.atWarn()
                    .addKeyValue("plugin", source.name())
                    .addKeyValue("reason", e.reason())
                    .log("broken plugin ignored");
        } finally {
            if (plugin != null && (!added || closed.get())) {
                plugin.end();
            }
        }
    }

    /** Adds a plugin to the snapshot, and returns whether no other thread was quicker. */
    private boolean register(PluginSlot plugin, PluginSlot.Names names) throws PluginException {
        Map<String, BackendSlot> backends = new LinkedHashMap<>();
        names.backends()
                .keySet()
                .forEach(name -> backends.put(name, new BackendSlot(name, plugin, environment, actionThreads)));
        Path path = plugin.source().path();
        while (true) {
            PluginSnapshot now = plugins.get();
            if (now.plugins().containsKey(path)) {
                return false;
            }
            if (plugins.compareAndSet(now, now.with(path, plugin, backends, names))) {
                return true;
            }
        }
    }
}
