package dev.nereid.server.plugin;

import java.nio.file.Path;
import java.util.List;

/**
 * A plugin on disk: its name, directory and jars. Immutable.
 *
 * @param name the name of its directory, or of its jar without the extension
 * @param directory the directory that holds the jars
 * @param jars its jars by name; empty for a directory without any
 */
record PluginSource(String name, Path directory, List<Path> jars) {
    PluginSource {
        jars = List.copyOf(jars);
    }
}
