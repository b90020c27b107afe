package dev.nereid.server.plugin.jar;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.List;
import java.util.concurrent.TimeUnit;

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

    /**
     * Returns a text that changes with its jars. Reads their sizes and times, and not their content; blocks.
     *
     * @return the text; of no meaning, but equal while nothing is written
     */
    public String stamp() {
        StringBuilder text = new StringBuilder();
        for (Path jar : jars) {
            text.append(jar.getFileName()).append(' ').append(stamp(jar)).append('\n');
        }
        return text.toString();
    }

    private static String stamp(Path jar) {
        try {
            BasicFileAttributes file = Files.readAttributes(jar, BasicFileAttributes.class);
            return file.size() + " " + file.lastModifiedTime().to(TimeUnit.NANOSECONDS) + " " + file.fileKey();
        } catch (IOException e) {
            return "unreadable: " + e.getMessage();
        }
    }

    /** Returns this plugin with its jars in another directory. */
    PluginSource withJarsIn(Path other) {
        return new PluginSource(
                name,
                directory,
                jars.stream().map(jar -> other.resolve(jar.getFileName())).toList());
    }
}
