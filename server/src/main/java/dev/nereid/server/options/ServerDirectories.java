package dev.nereid.server.options;

import dev.nereid.repository.storage.StorageOptions;
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

    /** Returns the directory in which plugins unpack files, or its default; empty without plugins. */
    public Path cacheRoot() {
        if (!pluginCache.toString().isEmpty() || plugins.isEmpty()) {
            return pluginCache;
        }
        return plugins.getFirst().resolve(".cache");
    }

    /** Returns the model repositories that are no readable directories at the moment. */
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
