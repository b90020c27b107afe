package dev.nereid.server.plugin;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * A folder of plugins: every jar in it is one, and so is every folder of jars. Immutable; reads the disk at each call.
 * Hidden entries and other files are ignored.
 */
final class PluginDirectory {
    private static final String JAR = ".jar";

    private final Path path;

    PluginDirectory(Path path) {
        this.path = path;
    }

    /** Lists the plugins by name. */
    List<PluginSource> scan() {
        List<PluginSource> found = new ArrayList<>();
        for (Path entry : sorted(path)) {
            String name = entry.getFileName().toString();
            if (Files.isDirectory(entry)) {
                found.add(new PluginSource(name, entry, jars(entry)));
            } else if (isJar(entry)) {
                found.add(new PluginSource(name.substring(0, name.length() - JAR.length()), path, List.of(entry)));
            }
        }
        return found;
    }

    private static List<Path> jars(Path folder) {
        return sorted(folder).stream().filter(PluginDirectory::isJar).toList();
    }

    private static boolean isJar(Path entry) {
        return entry.getFileName().toString().endsWith(JAR) && Files.isRegularFile(entry);
    }

    private static List<Path> sorted(Path folder) {
        try (Stream<Path> entries = Files.list(folder)) {
            return entries.filter(entry -> !entry.getFileName().toString().startsWith("."))
                    .sorted()
                    .toList();
        } catch (IOException e) {
            throw new UncheckedIOException("plugins: cannot list " + folder + ": " + e.getMessage(), e);
        }
    }
}
