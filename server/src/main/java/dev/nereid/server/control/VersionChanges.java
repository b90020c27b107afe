package dev.nereid.server.control;

import dev.nereid.server.lifecycle.Generation;
import dev.nereid.server.lifecycle.PreparedModel;
import inference.ModelConfig;
import java.util.NavigableMap;
import java.util.NavigableSet;
import java.util.TreeMap;
import java.util.TreeSet;
import org.jspecify.annotations.Nullable;

/**
 * The versions of a model that a load loads, updates and keeps. Immutable.
 *
 * @param loaded the versions to be loaded, whether or not they serve already
 * @param updated the versions that serve, and get the instances of the new configuration
 * @param kept the versions that serve and stay as they are
 */
record VersionChanges(
        NavigableSet<Long> loaded, NavigableMap<Long, Generation> updated, NavigableMap<Long, Generation> kept) {
    /**
     * Compares a model with its last load.
     *
     * <p>A version that serves stays loaded if its plugin, its files and the files that all versions share are the
     * same, and the configuration differs in instance groups and version policy at most. It is updated if the instance
     * groups differ. An ensemble is always loaded again.
     *
     * @param prepared the model as it is now
     * @param source its files now
     * @param before its last load; {@code null} if it is not loaded
     * @param plugin the digest of the plugin of its backend
     */
    static VersionChanges of(
            PreparedModel prepared,
            ModelSource source,
            @Nullable LastLoad before,
            NavigableMap<Long, Generation> serving,
            String plugin) {
        boolean mayStay = before != null
                && before.plugin().equals(plugin)
                && !prepared.config().hasEnsembleScheduling();
        NavigableSet<Long> loaded = new TreeSet<>();
        NavigableMap<Long, Generation> updated = new TreeMap<>();
        NavigableMap<Long, Generation> kept = new TreeMap<>();
        for (long version : prepared.versions()) {
            Generation generation = serving.get(version);
            if (generation == null || before == null || !mayStay || !before.hasSameFiles(version, source)) {
                loaded.add(version);
                continue;
            }
            ModelConfig completed = generation.model().config();
            if (!before.differsInInstancesAlone(prepared, completed)) {
                loaded.add(version);
            } else if (hasInstances(prepared, before.config()) || hasInstances(prepared, completed)) {
                kept.put(version, generation);
            } else {
                updated.put(version, generation);
            }
        }
        return new VersionChanges(loaded, updated, kept);
    }

    private static boolean hasInstances(PreparedModel prepared, ModelConfig config) {
        return config.getInstanceGroupList().equals(prepared.config().getInstanceGroupList());
    }
}
