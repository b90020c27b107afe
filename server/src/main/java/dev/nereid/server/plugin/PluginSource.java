package dev.nereid.server.plugin;

import java.nio.file.Path;
import java.util.List;

/**
 * A plugin on disk: its name, directory and jars. Immutable.
 *
 * @param name the name of its folder, or of its jar without the extension
 * @param directory the folder that holds the jars
 * @param jars its jars by name; empty for a folder without any
 */
record PluginSource(String name, Path directory, List<Path> jars) {
    PluginSource {
        jars = List.copyOf(jars);
    }
}
