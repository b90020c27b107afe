package dev.nereid.server.options;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Directories of models and plugins, and the cache directory of plugins. Immutable.
 *
 * @param modelRepositories existing directories that hold models; at least one
 * @param plugins existing directories that hold plugins; the first of two plugins with backends of one name wins
 * @param pluginCache the directory in which plugins unpack native libraries and the like, created when a plugin needs
 *     it; empty for {@code .cache} in the first directory of plugins
 */
public record ServerDirectories(List<Path> modelRepositories, List<Path> plugins, Path pluginCache) {
    /**
     * Checks and copies the components.
     *
     * @throws IllegalArgumentException if there is no model repository, or a directory is missing
     */
    public ServerDirectories {
        modelRepositories = List.copyOf(modelRepositories);
        plugins = List.copyOf(plugins);
        requireDirectories("modelRepositories", modelRepositories);
        requireDirectories("plugins", plugins);
        if (modelRepositories.isEmpty()) {
            throw new IllegalArgumentException("modelRepositories: none (expected: at least one directory)");
        }
    }

    /**
     * Returns model repositories without plugins.
     *
     * @param modelRepositories existing directories that hold models; at least one
     * @return the directories
     * @throws IllegalArgumentException if there is none, or one of them does not exist
     */
    public static ServerDirectories of(List<Path> modelRepositories) {
        return new ServerDirectories(modelRepositories, List.of(), Path.of(""));
    }

    /**
     * Replaces the model repositories.
     *
     * @param paths existing directories; at least one
     * @return the changed directories
     * @throws IllegalArgumentException if there is none, or one of them does not exist
     */
    public ServerDirectories withModelRepositories(List<Path> paths) {
        return new ServerDirectories(paths, plugins, pluginCache);
    }

    /**
     * Replaces the directories of plugins.
     *
     * @param paths existing directories
     * @return the changed directories
     * @throws IllegalArgumentException if one of them does not exist
     */
    public ServerDirectories withPlugins(List<Path> paths) {
        return new ServerDirectories(modelRepositories, paths, pluginCache);
    }

    /**
     * Replaces the cache directory of plugins.
     *
     * @param path the directory; empty for the default
     * @return the changed directories
     */
    public ServerDirectories withPluginCache(Path path) {
        return new ServerDirectories(modelRepositories, plugins, path);
    }

    /**
     * Returns the directory in which plugins unpack what they need.
     *
     * @return the cache directory, or its default; empty without plugins
     */
    public Path cacheRoot() {
        if (!pluginCache.toString().isEmpty() || plugins.isEmpty()) {
            return pluginCache;
        }
        return plugins.getFirst().resolve(".cache");
    }

    private static void requireDirectories(String option, List<Path> paths) {
        for (Path path : paths) {
            if (!Files.isDirectory(path)) {
                throw new IllegalArgumentException(option + ": " + path + " (expected: an existing directory)");
            }
        }
    }
}
