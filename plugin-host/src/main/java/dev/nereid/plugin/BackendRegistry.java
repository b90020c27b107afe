package dev.nereid.plugin;

import dev.nereid.api.Spelling;
import dev.nereid.plugin.jar.PluginDirectory;
import dev.nereid.plugin.jar.PluginException;
import dev.nereid.plugin.jar.PluginSource;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.SortedMap;
import java.util.SortedSet;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.Executor;
import java.util.concurrent.ThreadFactory;
import java.util.concurrent.atomic.AtomicBoolean;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.AtomicReference;
import java.util.stream.Collectors;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * Registers the backends of plugins by name. Owns the plugins and the backends. Safe for use by any thread.
 *
 * <p>The registered plugins are an immutable snapshot that {@link #refresh} replaces. A plugin and its
 * backends are open while they are leased: {@link BackendSlot} and {@link PluginSlot}.
 */
public final class BackendRegistry implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(BackendRegistry.class);

    private final List<Path> directories;
    private final PluginEnvironment environment;
    /** The paths of plugins that are classes of the program; complete before the first scan for others. */
    private final Set<Path> ofProgram = new LinkedHashSet<>();

    private final AtomicReference<PluginSnapshot> plugins = new AtomicReference<>(PluginSnapshot.EMPTY);
    private final AtomicBoolean closed = new AtomicBoolean();
    private final AtomicLong changes = new AtomicLong();
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
     * Registers backends that are classes of the program, and finds the plugins of directories. A broken plugin
     * is reported by {@link #statuses()} and otherwise ignored.
     *
     * @param directories existing directories, in the order of their plugins' precedence
     * @param providers the providers of the program, which take precedence over providers of plugins
     * @param environment the settings and limits of plugins
     * @throws IllegalArgumentException if a provider of the program cannot be used, with the reason
     */
    public static BackendRegistry open(
            List<Path> directories, List<BackendProvider> providers, PluginEnvironment environment) {
        BackendRegistry registry = new BackendRegistry(directories, environment);
        providers.forEach(registry::add);
        registry.refresh();
        return registry;
    }

    private void add(BackendProvider provider) {
        // A distinct number: of two providers of one class, none replaces the other.
        PluginSlot plugin =
                PluginSlot.of(provider, environment.cacheRoot().resolve(Integer.toString(ofProgram.size())));
        ofProgram.add(plugin.source().path());
        try {
            register(plugin, plugin.names(), ofProgram);
        } catch (PluginException e) {
            throw new IllegalArgumentException(
                    "provider: " + provider.getClass().getName() + ": " + e.reason(), e);
        }
    }

    /**
     * Scans for plugins again: adds new ones, and replaces plugins with changed jars. Blocks.
     *
     * <p>A replaced plugin serves the leases that it has, and is closed with the last of them. A plugin without files
     * stays until another plugin brings a backend of the same name. A plugin that is broken changes nothing; it is
     * reported, and tried again when its jars or the jars of other plugins change. A plugin with native libraries is
     * not replaced.
     *
     * <p>Directories without jars are backends if a plugin {@linkplain BackendProvider#claims claims} them, and as long as they
     * are there.
     */
    public void refresh() {
        List<PluginSource> sources = directories.stream()
                .flatMap(directory -> new PluginDirectory(directory).scan().stream())
                .toList();
        Set<Path> present = new LinkedHashSet<>(ofProgram);
        sources.forEach(source -> present.add(source.path()));
        plugins.updateAndGet(now -> now.withBrokenOf(present));
        sources.stream().filter(source -> !source.jars().isEmpty()).forEach(source -> refresh(source, present));
        endClaims(sources);
        sources.stream() // after the plugins that may claim them
                .filter(source -> source.jars().isEmpty())
                .forEach(source -> refreshClaim(source, present));
    }

    private void refresh(PluginSource source, Set<Path> present) {
        String stamp = source.stamp();
        PluginSnapshot now = plugins.get();
        PluginSlot registered = now.plugins().get(source.path());
        if (registered != null && registered.hasStamp(stamp)) {
            forgetBroken(source.path());
        } else if (!now.isBroken(source.path(), stamp + present) && !isSame(registered, source, stamp)) {
            add(source, stamp + present, present);
        }
    }

    /** Ends the backends of directories that were removed, or have jars now. */
    private void endClaims(List<PluginSource> sources) {
        Set<Path> withJars = sources.stream()
                .filter(source -> !source.jars().isEmpty())
                .map(PluginSource::path)
                .collect(Collectors.toSet());
        plugins.get().claimed().forEach((path, slot) -> {
            // Another thread may have found it after this one has read the directories.
            boolean isGone = slot.claim().stream()
                    .noneMatch(claim -> Files.isDirectory(claim.directory().directory()));
            if (isGone || withJars.contains(path)) {
                endClaim(slot);
            }
        });
    }

    private void endClaim(BackendSlot slot) {
        PluginSnapshot before = plugins.getAndUpdate(now -> now.without(slot));
        if (before.backends().containsValue(slot)) {
            changes.incrementAndGet();
            slot.end();
        }
    }

    /**
     * Finds the plugin that runs a directory without jars as a backend, unless that is known. A backend of the directory goes
     * on until another one takes its place, or no plugin runs the directory any more.
     */
    private void refreshClaim(PluginSource source, Set<Path> present) {
        PluginSnapshot now = plugins.get();
        if (now.plugins().containsKey(source.path())) { // its jars are gone
            refresh(source, present);
            return;
        }
        String stamp = source.stamp();
        BackendSlot claimed = now.claimed().get(source.path());
        if (claimed != null
                && claimed.claim().filter(claim -> claim.stamp().equals(stamp)).isPresent()) {
            forgetBroken(source.path());
            return;
        }
        String tried = stamp
                + present
                + now.plugins().values().stream().map(PluginSlot::digest).toList();
        if (now.isBroken(source.path(), tried)) {
            return;
        }
        try {
            Optional<Claimed> found = claims(source, stamp);
            if (found.isPresent()) {
                register(source, claimed, found.get());
                return;
            }
            if (claimed != null) {
                endClaim(claimed);
            }
            throw PluginSlot.withoutJars();
        } catch (PluginException e) {
            addBroken(source, tried, e);
        }
    }

    /** A backend that a plugin makes of a directory, with the name that the plugin gives it. */
    private record Claimed(String name, BackendSlot slot) {}

    /** Asks each plugin. A plugin that fails does not keep the others from being asked. */
    private Optional<Claimed> claims(PluginSource source, String stamp) throws PluginException {
        PluginException failure = null;
        for (PluginSlot plugin : plugins.get().plugins().values()) {
            try {
                Optional<Claimed> found = plugin.claims(source.directory())
                        .map(claim -> new Claimed(
                                claim.name(),
                                new BackendSlot(
                                        claim.name(),
                                        Optional.of(new BackendSlot.Claim(source, claim.provider(), stamp)),
                                        plugin,
                                        environment,
                                        actionThreads)));
                if (found.isPresent()) {
                    return found;
                }
            } catch (PluginException e) {
                failure = failure == null ? e : failure;
            }
        }
        if (failure != null) {
            throw failure;
        }
        return Optional.empty();
    }

    /** Adds the backend of a directory in place of the former one, if any. */
    private void register(PluginSource source, @Nullable BackendSlot before, Claimed claimed) throws PluginException {
        while (true) {
            PluginSnapshot now = plugins.get();
            BackendSlot current = now.claimed().get(source.path());
            boolean isOvertaken = current != null && !current.equals(before);
            if (isOvertaken || !now.plugins().containsValue(claimed.slot().plugin())) { // the next refresh checks again
                return;
            }
            PluginSnapshot rest = current == null ? now : now.without(current);
            if (plugins.compareAndSet(now, rest.with(claimed.name(), claimed.slot()))) {
                changes.incrementAndGet();
                forgetBroken(source.path());
                if (current != null) {
                    current.end();
                }
                if (closed.get()) {
                    claimed.slot().end();
                }
                return;
            }
        }
    }

    /** Returns whether a plugin that was written again need not or cannot be replaced. */
    private boolean isSame(@Nullable PluginSlot registered, PluginSource source, String stamp) {
        if (registered == null) {
            return false;
        }
        try {
            boolean equal = PluginSlot.digest(source).equals(registered.digest());
            if (!equal && registered.isNative()) {
                registered.needsRestart();
                LOG.atWarn()
                        .addKeyValue("plugin", source.name())
                        .log(PluginSlot.RESTART + " (plugin '{}')", source.name());
            }
            if (equal || registered.isNative()) {
                registered.saw(stamp);
                forgetBroken(source.path());
                return true;
            }
        } catch (PluginException e) {
            return false; // reported as any other broken plugin
        }
        return false;
    }

    private void forgetBroken(Path path) {
        PluginSnapshot now = plugins.get();
        if (now.broken().containsKey(path)) {
            Set<Path> others = new LinkedHashSet<>(now.broken().keySet());
            others.remove(path);
            plugins.updateAndGet(latest -> latest.withBrokenOf(others));
        }
    }

    /** Returns how often a plugin was added or replaced. Never falls. */
    public long changes() {
        return changes.get();
    }

    /** Returns the digest of the plugin of a backend; an empty text if there is no such backend. */
    public String digest(String name) {
        BackendSlot slot = plugins.get().backends().get(name);
        return slot == null ? "" : slot.digest();
    }

    /**
     * Acquires a backend, which is created for its first lease. Blocks while it is being created or closed.
     *
     * @return a lease on the backend, owned by the caller
     * @throws BackendException if there is no such backend, or if it cannot be created; the next call tries again
     */
    public BackendLease acquire(String name) {
        while (true) {
            BackendSlot slot = find(name);
            try {
                return slot.acquire();
            } catch (BackendException e) {
                if (slot.equals(plugins.get().backends().get(name))) {
                    throw e;
                }
                // It was replaced meanwhile.
            }
        }
    }

    private BackendSlot find(String name) {
        PluginSnapshot now = plugins.get();
        BackendSlot slot = now.backends().get(name);
        if (slot == null) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "unable to find backend library for backend '" + name
                            + "', try specifying runtime on the model configuration."
                            + now.brokenReason(name)
                            + now.notices()
                            + Spelling.question(name, now.backends().keySet()));
        }
        return slot;
    }

    /**
     * Acquires the provider of a repository agent. Blocks while its plugin is loaded or closed.
     *
     * @return a lease on the provider, owned by the caller
     * @throws BackendException if there is no such agent, or if its plugin cannot be loaded
     */
    public AgentLease acquireAgent(String name) {
        while (true) {
            PluginSlot plugin = plugins.get().agents().get(name);
            if (plugin == null) {
                throw new BackendException(
                        ErrorCode.INVALID_ARGUMENT,
                        "repository agent '" + name + "': unknown (expected: one of " + agents() + ")");
            }
            try {
                return plugin.acquireAgent(name);
            } catch (BackendException e) {
                if (plugin.equals(plugins.get().agents().get(name))) {
                    throw e;
                }
                // It was replaced meanwhile.
            }
        }
    }

    /** Returns the names of the repository agents of plugins. */
    public SortedSet<String> agents() {
        return new TreeSet<>(plugins.get().agents().keySet());
    }

    /** Returns the names of the plugins with repository agents, by the names of the agents. */
    public SortedMap<String, String> agentPlugins() {
        SortedMap<String, String> all = new TreeMap<>();
        plugins.get().agents().forEach((name, plugin) -> all.put(name, plugin.name()));
        return all;
    }

    /** Returns the name of the backend that a legacy platform means; an empty text if there is none. */
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
        now.broken().values().forEach(broken -> all.add(broken.status()));
        return List.copyOf(all);
    }

    /**
     * Closes the backends, then the plugins, each once. Leased backends and plugins are closed with their last leases.
     * Called after the last model was closed.
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

    private void add(PluginSource source, String stamp, Set<Path> present) {
        PluginSlot plugin = null;
        boolean added = false;
        try {
            plugin = PluginSlot.of(source, environment);
            added = register(plugin, plugin.names(), present);
        } catch (PluginException e) {
            addBroken(source, stamp, e);
        } finally {
            if (plugin != null && !added) {
                plugin.discard();
            } else if (plugin != null && closed.get()) {
                plugin.end();
            }
        }
    }

    private void addBroken(PluginSource source, String stamp, PluginException reason) {
        BackendStatus status = new BackendStatus("", source.name(), BackendStatus.State.BROKEN, reason.reason());
        plugins.updateAndGet(now -> now.withBroken(source.path(), new PluginSnapshot.Broken(stamp, status)));
        LOG.atWarn()
                .addKeyValue("plugin", source.name())
                .addKeyValue("reason", reason.reason())
                .log("broken plugin ignored (plugin '{}'): {}", source.name(), reason.reason());
    }

    /** Adds a plugin to the snapshot in place of others, and returns whether no other thread was quicker. */
    private boolean register(PluginSlot plugin, PluginSlot.Names names, Set<Path> present) throws PluginException {
        Map<String, BackendSlot> backends = new LinkedHashMap<>();
        names.backends()
                .keySet()
                .forEach(name -> backends.put(name, new BackendSlot(name, plugin, environment, actionThreads)));
        Path path = plugin.source().path();
        while (true) {
            PluginSnapshot now = plugins.get();
            PluginSlot registered = now.plugins().get(path);
            if (registered != null && registered.digest().equals(plugin.digest())) {
                return false;
            }
            Set<PluginSlot> replaced = now.replacedBy(path, present, names);
            requireReplaceable(replaced);
            Set<Path> broken = new LinkedHashSet<>(now.broken().keySet());
            broken.remove(path);
            PluginSnapshot next =
                    now.without(replaced).with(path, plugin, backends, names).withBrokenOf(broken);
            if (plugins.compareAndSet(now, next)) {
                changes.incrementAndGet();
                end(now.backendsOf(replaced), replaced);
                now.claimed().values().stream()
                        .filter(slot -> !next.backends().containsValue(slot)) // one of the plugin has its name
                        .forEach(BackendSlot::end);
                return true;
            }
        }
    }

    /** Refuses to replace plugins with native libraries, also by one of another file name. */
    private static void requireReplaceable(Set<PluginSlot> replaced) throws PluginException {
        for (PluginSlot plugin : replaced) {
            if (plugin.isNative()) {
                plugin.needsRestart();
                throw new PluginException("takes the place of plugin '" + plugin.name() + "', whose jars are gone: "
                        + PluginSlot.RESTART);
            }
        }
    }

    /** Ends replaced plugins. They are closed with the last leases of the models that still use them. */
    private static void end(List<BackendSlot> backends, Set<PluginSlot> replaced) {
        backends.forEach(BackendSlot::end);
        for (PluginSlot plugin : replaced) {
            plugin.discard();
            LOG.atInfo().addKeyValue("plugin", plugin.name()).log("plugin replaced (plugin '{}')", plugin.name());
        }
    }
}
