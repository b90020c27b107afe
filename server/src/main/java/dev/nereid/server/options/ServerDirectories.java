package dev.nereid.server.options;

import dev.nereid.server.storage.StorageOptions;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Directories of models and plugins, and the cache directory of plugins. Immutable.
 *
 * @param modelRepositories directories that hold models; at least one, or a remote repository. A directory that is
 *     given twice counts once. The start fails if one does not exist, and with {@code exitOnError} {@code false} the
 *     server is not live and not ready
 * @param plugins existing directories that hold plugins; the first of two plugins with backends of one name wins
 * @param pluginCache the directory in which plugins unpack native libraries and the like, created when a plugin needs
 *     it; empty for {@code .cache} in the first directory of plugins
 * @param remote the remote model repositories, and the directories of their plugins and copies
 * @param hasNamespaces whether each model repository is a namespace, so that models of two may have the same name
 */
public record ServerDirectories(
        List<Path> modelRepositories,
        List<Path> plugins,
        Path pluginCache,
        StorageOptions remote,
        boolean hasNamespaces) {
    /**
     * Checks and copies the components.
     *
     * @throws IllegalArgumentException if there is no model repository, or a directory of plugins is missing
     */
    public ServerDirectories {
        modelRepositories = distinct(modelRepositories);
        plugins = List.copyOf(plugins);
        requireDirectories("plugins", plugins);
        if (modelRepositories.isEmpty() && remote.urls().isEmpty()) {
            throw new IllegalArgumentException("modelRepositories: none (expected: at least one directory)");
        }
    }

    /**
     * Returns model repositories without plugins.
     *
     * @param modelRepositories directories that hold models; at least one
     * @return the directories
     * @throws IllegalArgumentException if there is none
     */
    public static ServerDirectories of(List<Path> modelRepositories) {
        return new ServerDirectories(modelRepositories, List.of(), Path.of(""), StorageOptions.NONE, false);
    }

    /**
     * Replaces the model repositories.
     *
     * @param paths directories; at least one
     * @return the changed directories
     * @throws IllegalArgumentException if there is none
     */
    public ServerDirectories withModelRepositories(List<Path> paths) {
        return new ServerDirectories(paths, plugins, pluginCache, remote, hasNamespaces);
    }

    /**
     * Replaces the directories of plugins.
     *
     * @param paths existing directories
     * @return the changed directories
     * @throws IllegalArgumentException if one of them does not exist
     */
    public ServerDirectories withPlugins(List<Path> paths) {
        return new ServerDirectories(modelRepositories, paths, pluginCache, remote, hasNamespaces);
    }

    /**
     * Replaces the cache directory of plugins.
     *
     * @param path the directory; empty for the default
     * @return the changed directories
     */
    public ServerDirectories withPluginCache(Path path) {
        return new ServerDirectories(modelRepositories, plugins, path, remote, hasNamespaces);
    }

    /**
     * Replaces the remote model repositories.
     *
     * @param options the repositories, and the directories of their plugins and copies
     * @return the changed directories
     * @throws IllegalArgumentException if there is no remote and no local repository
     */
    public ServerDirectories withRemote(StorageOptions options) {
        return new ServerDirectories(modelRepositories, plugins, pluginCache, options, hasNamespaces);
    }

    /**
     * Chooses whether models of two repositories may have the same name.
     *
     * @param choice whether each model repository is a namespace
     * @return the changed directories
     */
    public ServerDirectories withNamespaces(boolean choice) {
        return new ServerDirectories(modelRepositories, plugins, pluginCache, remote, choice);
    }

    /**
     * Returns the directory in which plugins unpack files.
     *
     * @return the cache directory, or its default; empty without plugins
     */
    public Path cacheRoot() {
        if (!pluginCache.toString().isEmpty() || plugins.isEmpty()) {
            return pluginCache;
        }
        return plugins.getFirst().resolve(".cache");
    }

    /**
     * Returns the model repositories that do not exist, or may not be read.
     *
     * @return the ones that are no readable directories at the moment
     */
    public List<Path> missingModelRepositories() {
        return modelRepositories.stream()
                .filter(path -> !Files.isDirectory(path) || !Files.isReadable(path))
                .toList();
    }

    /**
     * Checks that the model repositories exist.
     *
     * @throws IllegalArgumentException if one is no directory
     */
    public void requireModelRepositories() {
        requireDirectories("modelRepositories", modelRepositories);
    }

    /** Returns the first of equal paths each. Links are not followed, since they may lead elsewhere later. */
    private static List<Path> distinct(List<Path> paths) {
        Map<Path, Path> distinct = new LinkedHashMap<>();
        paths.forEach(path -> distinct.putIfAbsent(path.toAbsolutePath().normalize(), path));
        return List.copyOf(distinct.values());
    }

    private static void requireDirectories(String option, List<Path> paths) {
        for (Path path : paths) {
            if (!Files.isDirectory(path)) {
                throw new IllegalArgumentException(option + ": " + path + " (expected: an existing directory)");
            }
        }
    }
}
