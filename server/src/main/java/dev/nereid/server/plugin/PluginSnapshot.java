package dev.nereid.server.plugin;

import dev.nereid.server.plugin.jar.PluginException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * The registered plugins at one moment. Immutable.
 *
 * @param plugins the plugins by {@link dev.nereid.server.plugin.jar.PluginSource#path}, in the order of registration
 * @param backends their backends by name
 * @param agents the plugins of repository agents by the agents' names
 * @param platforms names of backends by the legacy platforms that mean them
 * @param broken the plugins that cannot be used
 */
record PluginSnapshot(
        Map<Path, PluginSlot> plugins,
        Map<String, BackendSlot> backends,
        Map<String, PluginSlot> agents,
        Map<String, String> platforms,
        List<BackendStatus> broken) {
    static final PluginSnapshot EMPTY = new PluginSnapshot(Map.of(), Map.of(), Map.of(), Map.of(), List.of());

    PluginSnapshot {
        plugins = Collections.unmodifiableMap(new LinkedHashMap<>(plugins));
        backends = Collections.unmodifiableMap(new LinkedHashMap<>(backends));
        agents = Map.copyOf(agents);
        platforms = Map.copyOf(platforms);
        broken = List.copyOf(broken);
    }

    /**
     * Adds a plugin.
     *
     * @param path identifies it
     * @param added its backends
     * @param names the names of its backends and agents
     * @throws PluginException if one of its backends or agents has the name of another plugin's
     */
    PluginSnapshot with(Path path, PluginSlot plugin, Map<String, BackendSlot> added, PluginSlot.Names names)
            throws PluginException {
        for (String name : added.keySet()) {
            BackendSlot other = backends.get(name);
            if (other != null) {
                throw new PluginException("backend name: '" + name + "' is the name of a backend of plugin '"
                        + other.pluginName() + "' already (expected: a name of its own)");
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

    /** Adds a plugin that cannot be used. */
    PluginSnapshot withBroken(String plugin, String reason) {
        List<BackendStatus> all = new ArrayList<>(broken);
        all.add(new BackendStatus("", plugin, BackendStatus.State.BROKEN, reason));
        return new PluginSnapshot(plugins, backends, agents, platforms, all);
    }

    /** Forgets which plugins cannot be used, before all of them are looked at again. */
    PluginSnapshot withoutBroken() {
        return new PluginSnapshot(plugins, backends, agents, platforms, List.of());
    }

    /** Returns a sentence about a broken plugin, or an empty text. */
    String brokenReason(String plugin) {
        return broken.stream()
                .filter(status -> status.plugin().equals(plugin))
                .findFirst()
                .map(status -> " Plugin '" + plugin + "' is broken: " + status.reason())
                .orElse("");
    }
}
