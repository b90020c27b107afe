package dev.nereid.plugin.jar;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A directory of plugins: each jar and each subdirectory of jars is one plugin. Immutable; reads the disk at each
 * call. Hidden entries and other files are ignored.
 */
public final class PluginDirectory {
    private static final Logger LOG = LoggerFactory.getLogger(PluginDirectory.class);
    private static final String JAR = ".jar";

    private final Path path;

    /** Creates the directory at a path. */
    public PluginDirectory(Path path) {
        this.path = path;
    }

    /** Lists the plugins by name; some may be without jars, as one of a directory that cannot be read. */
    public List<PluginSource> scan() {
        List<PluginSource> found = new ArrayList<>();
        for (Path entry : visible(path)) {
            String name = entry.getFileName().toString();
            if (Files.isDirectory(entry)) {
                found.add(new PluginSource(name, entry, jars(entry)));
            } else if (isJar(entry)) {
                found.add(new PluginSource(name.substring(0, name.length() - JAR.length()), path, List.of(entry)));
            }
        }
        return found;
    }

    private static List<Path> jars(Path directory) {
        return visible(directory).stream().filter(PluginDirectory::isJar).toList();
    }

    private static boolean isJar(Path entry) {
        return entry.getFileName().toString().endsWith(JAR) && Files.isRegularFile(entry);
    }

    private static List<Path> visible(Path directory) {
        try (Stream<Path> entries = Files.list(directory)) {
            return entries.filter(entry -> !entry.getFileName().toString().startsWith("."))
                    .sorted()
                    .toList();
        } catch (IOException e) {
            LOG.atWarn()
                    .addKeyValue("directory", directory)
                    .setCause(e)
                    .log("plugin directory could not be read ({})", directory);
            return List.of();
        }
    }
}
