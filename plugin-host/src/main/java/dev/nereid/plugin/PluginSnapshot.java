package dev.nereid.plugin;

import dev.nereid.plugin.jar.PluginException;
import java.nio.file.Path;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Collectors;

/**
 * The registered plugins at one moment. Immutable.
 *
 * @param plugins the plugins by {@link dev.nereid.plugin.jar.PluginSource#path}, in the order of registration
 * @param backends their backends by name
 * @param agents the plugins of repository agents by the agents' names
 * @param platforms names of backends by the legacy platforms that mean them
 * @param broken the plugins that cannot be used, by their paths
 */
record PluginSnapshot(
        Map<Path, PluginSlot> plugins,
        Map<String, BackendSlot> backends,
        Map<String, PluginSlot> agents,
        Map<String, String> platforms,
        Map<Path, Broken> broken) {
    static final PluginSnapshot EMPTY = new PluginSnapshot(Map.of(), Map.of(), Map.of(), Map.of(), Map.of());

    /**
     * A plugin that cannot be used. Immutable.
     *
     * @param stamp changes with its jars and with the other plugins, and then it is tried again
     * @param status its name and the reason
     */
    record Broken(String stamp, BackendStatus status) {}

    PluginSnapshot {
        plugins = Collections.unmodifiableMap(new LinkedHashMap<>(plugins));
        backends = Collections.unmodifiableMap(new LinkedHashMap<>(backends));
        agents = Map.copyOf(agents);
        platforms = Map.copyOf(platforms);
        broken = Collections.unmodifiableMap(new LinkedHashMap<>(broken));
    }

    /**
     * Adds a plugin.
     *
     * @param path identifies it
     * @param names the names of its backends and agents
     * @throws PluginException if one of its backends or agents has the name of another plugin's
     */
    PluginSnapshot with(Path path, PluginSlot plugin, Map<String, BackendSlot> added, PluginSlot.Names names)
            throws PluginException {
        for (String name : added.keySet()) {
            BackendSlot other = backends.get(name);
            if (other != null && other.claim().isEmpty()) {
                throw nameTaken(name, other);
            }
        }
        Map<String, PluginSlot> allAgents = new LinkedHashMap<>(agents);
        for (String name : names.agents()) {
            PluginSlot other = allAgents.putIfAbsent(name, plugin);
            if (other != null) {
                throw new PluginException("repository agent name: '" + name + "' is the name of an agent of plugin '"
                        + other.name() + "' already (expected: a name of its own)");
            }
        }
        Map<Path, PluginSlot> allPlugins = new LinkedHashMap<>(plugins);
        allPlugins.put(path, plugin);
        Map<String, BackendSlot> allBackends = new LinkedHashMap<>(backends);
        allBackends.putAll(added);
        Map<String, String> allPlatforms = new LinkedHashMap<>(platforms);
        names.backends().forEach((name, those) -> those.forEach(platform -> allPlatforms.putIfAbsent(platform, name)));
        return new PluginSnapshot(allPlugins, allBackends, allAgents, allPlatforms, broken);
    }

    /** Returns the plugins that a plugin replaces: the one of the same path, and others with its names and no files. */
    Set<PluginSlot> replacedBy(Path path, Set<Path> present, PluginSlot.Names names) {
        Set<PluginSlot> replaced = new LinkedHashSet<>();
        plugins.forEach((other, slot) -> {
            boolean isGone = !present.contains(other);
            boolean sharesNames = backends.entrySet().stream()
                            .anyMatch(entry -> entry.getValue().plugin().equals(slot)
                                    && entry.getValue().claim().isEmpty()
                                    && names.backends().containsKey(entry.getKey()))
                    || names.agents().stream().anyMatch(agent -> slot.equals(agents.get(agent)));
            if (other.equals(path) || (isGone && sharesNames)) {
                replaced.add(slot);
            }
        });
        return replaced;
    }

    List<BackendSlot> backendsOf(Set<PluginSlot> some) {
        return backends.values().stream()
                .filter(slot -> some.contains(slot.plugin()))
                .toList();
    }

    /** Removes plugins with all that they bring. */
    PluginSnapshot without(Set<PluginSlot> removed) {
        Map<Path, PluginSlot> allPlugins = new LinkedHashMap<>(plugins);
        allPlugins.values().removeAll(removed);
        Map<String, BackendSlot> allBackends = new LinkedHashMap<>(backends);
        allBackends.values().removeIf(slot -> removed.contains(slot.plugin()));
        Map<String, PluginSlot> allAgents = new LinkedHashMap<>(agents);
        allAgents.values().removeAll(removed);
        Map<String, String> allPlatforms = new LinkedHashMap<>(platforms);
        allPlatforms.values().retainAll(allBackends.keySet());
        return new PluginSnapshot(allPlugins, allBackends, allAgents, allPlatforms, broken);
    }

    /**
     * Adds a backend that a plugin creates from a directory without jars.
     *
     * @throws PluginException if another backend has its name
     */
    PluginSnapshot with(String name, BackendSlot claimed) throws PluginException {
        Map<String, BackendSlot> all = new LinkedHashMap<>(backends);
        BackendSlot other = all.putIfAbsent(name, claimed);
        if (other != null) {
            throw nameTaken(name, other);
        }
        return new PluginSnapshot(plugins, all, agents, platforms, broken);
    }

    PluginSnapshot without(BackendSlot removed) {
        Map<String, BackendSlot> all = new LinkedHashMap<>(backends);
        all.values().remove(removed);
        return new PluginSnapshot(plugins, all, agents, platforms, broken);
    }

    /** Returns the backends that plugins create from directories without jars, by the paths of the directories. */
    Map<Path, BackendSlot> claimed() {
        Map<Path, BackendSlot> found = new LinkedHashMap<>();
        backends.values()
                .forEach(slot -> slot.claim()
                        .ifPresent(claim -> found.put(claim.directory().path(), slot)));
        return found;
    }

    private static PluginException nameTaken(String name, BackendSlot other) {
        return new PluginException("backend name: '" + name + "' is the name of a backend of plugin '"
                + other.pluginName() + "' already (expected: a name of its own)");
    }

    /** Adds a plugin that cannot be used. */
    PluginSnapshot withBroken(Path path, Broken plugin) {
        Map<Path, Broken> all = new LinkedHashMap<>(broken);
        all.put(path, plugin);
        return new PluginSnapshot(plugins, backends, agents, platforms, all);
    }

    /** Keeps the broken plugins of the given paths, and removes other broken plugins. */
    PluginSnapshot withBrokenOf(Set<Path> paths) {
        Map<Path, Broken> kept = new LinkedHashMap<>(broken);
        kept.keySet().retainAll(paths);
        return kept.equals(broken) ? this : new PluginSnapshot(plugins, backends, agents, platforms, kept);
    }

    /** Returns whether a plugin cannot be used, and has not changed since that was found out. */
    boolean isBroken(Path path, String stamp) {
        Broken known = broken.get(path);
        return known != null && known.stamp().equals(stamp);
    }

    /** Returns a sentence about a broken plugin, or an empty text. */
    String brokenReason(String plugin) {
        return broken.values().stream()
                .map(Broken::status)
                .filter(status -> status.plugin().equals(plugin))
                .findFirst()
                .map(status -> " Plugin '" + plugin + "' is broken: " + status.reason())
                .orElse("");
    }

    /** Returns sentences about the plugins that need a restart, or an empty text. */
    String notices() {
        return plugins.values().stream()
                .filter(plugin -> !plugin.notice().isEmpty())
                .map(plugin -> " Plugin '" + plugin.name() + "': " + plugin.notice() + ".")
                .collect(Collectors.joining());
    }
}
