package dev.nereid.server;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * Directories of models and plugins, and the cache directory of plugins. Immutable.
 *
 * @param modelRepositories the folders that hold models; at least one
 * @param pluginDirectories the folders that hold plugins
 * @param cacheDirectory the folder in which plugins unpack what they need; empty for the default
 */
record ServerDirectories(List<Path> modelRepositories, List<Path> pluginDirectories, Path cacheDirectory) {
    /**
     * Copies the components.
     *
     * @throws IllegalArgumentException if there is no folder of models, or a folder is missing
     */
    ServerDirectories {
        modelRepositories = List.copyOf(modelRepositories);
        pluginDirectories = List.copyOf(pluginDirectories);
        requireDirectories("modelRepositories", modelRepositories);
        requireDirectories("pluginDirectories", pluginDirectories);
        if (modelRepositories.isEmpty()) {
            throw new IllegalArgumentException("modelRepositories: none (expected: at least one folder)");
        }
    }

    private static void requireDirectories(String option, List<Path> folders) {
        for (Path folder : folders) {
            if (!Files.isDirectory(folder)) {
                throw new IllegalArgumentException(option + ": " + folder + " (expected: an existing folder)");
            }
        }
    }

    /** Returns the folder in which plugins unpack what they need: beside the first of them, unless one was set. */
    Path cacheRoot() {
        if (!cacheDirectory.toString().isEmpty() || pluginDirectories.isEmpty()) {
            return cacheDirectory;
        }
        return pluginDirectories.getFirst().resolve(".cache");
    }
}
