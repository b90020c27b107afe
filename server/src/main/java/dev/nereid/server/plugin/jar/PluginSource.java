package dev.nereid.server.plugin.jar;

import java.nio.file.Path;
import java.util.List;

/**
 * A plugin on disk: its name, directory and jars. Immutable.
 *
 * @param name the name of its directory, or of its jar without the extension
 * @param directory the directory that holds the jars
 * @param jars its jars by name; empty for a directory without any
 */
public record PluginSource(String name, Path directory, List<Path> jars) {
    /** Copies the list. */
    public PluginSource {
        jars = List.copyOf(jars);
    }

    /**
     * Identifies the plugin among all, whatever it contains.
     *
     * @return a path that no other plugin has; there need not be such a file
     */
    public Path path() {
        return directory.resolve(name);
    }

    /** Returns this plugin with its jars in another directory. */
    PluginSource withJarsIn(Path other) {
        return new PluginSource(
                name,
                directory,
                jars.stream().map(jar -> other.resolve(jar.getFileName())).toList());
    }
}
