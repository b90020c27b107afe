package dev.nereid.backend.natives;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.function.Predicate;
import java.util.stream.Stream;

/**
 * Finds the native libraries that are mapped into processes. Stateless; any thread may use it.
 *
 * <p>A second copy of TensorFlow would abort the process, whatever class loader or library loads it, and a framework
 * may stay mapped when it is closed. So this class reads the maps of the process and keeps no list: each plugin has a
 * separate copy of this class.
 */
public final class LoadedLibraries {
    private static final Path PROCESSES = Path.of("/proc");
    private static final Path MAPS = Path.of("/proc/self/maps");
    private static final String DELETED = " (deleted)";
    private static final int PATH_FIELD = 6;

    private LoadedLibraries() {}

    /** Returns the paths of mapped files of a name; none on a system without {@code /proc}. */
    static List<Path> named(String fileName) throws IOException {
        return isKnown() ? named(fileName, MAPS) : List.of();
    }

    /** Returns whether the system lists what this process has mapped: on Linux with {@code /proc}. */
    public static boolean isKnown() {
        return Files.isReadable(MAPS);
    }

    /**
     * Returns the paths, each once, of mapped files in directories with a parent of a given name, such as {@code b} for
     * {@code /a/b/c/file}; none on a system without {@code /proc}. A file may be removed by now.
     *
     * @throws IOException if the list of this process cannot be read
     */
    public static List<Path> below(String parent) throws IOException {
        return isKnown() ? below(parent, MAPS) : List.of();
    }

    /** Returns such paths that a list of mappings has. */
    static List<Path> below(String parent, Path maps) throws IOException {
        return paths(maps, path -> path.contains('/' + parent + '/')).stream()
                .filter(path -> path.resolveSibling("").resolveSibling("").endsWith(parent))
                .toList();
    }

    /** Returns the paths of files of a name that any process has mapped, as far as this one may look into them. */
    static List<Path> ofAllProcesses(String fileName) throws IOException {
        List<Path> mapped = new ArrayList<>();
        try (DirectoryStream<Path> processes = Files.newDirectoryStream(PROCESSES, "[0-9]*")) {
            for (Path process : processes) {
                try {
                    mapped.addAll(named(fileName, process.resolve("maps")));
                } catch (IOException | UncheckedIOException e) {
                    // it has ended, or is another user's
                }
            }
        }
        return mapped;
    }

    /** Returns the paths of files of a name that a list of mappings has. */
    static List<Path> named(String fileName, Path maps) throws IOException {
        return paths(maps, path -> path.endsWith('/' + fileName)); // others may be no path of this file system
    }

    private static List<Path> paths(Path maps, Predicate<String> selection) throws IOException {
        try (Stream<String> lines = Files.lines(maps)) {
            return lines.map(line -> line.split("\\s+", PATH_FIELD))
                    .filter(fields -> fields.length == PATH_FIELD && fields[PATH_FIELD - 1].startsWith("/"))
                    .map(fields -> fields[PATH_FIELD - 1])
                    .map(path -> path.endsWith(DELETED) ? path.substring(0, path.length() - DELETED.length()) : path)
                    .filter(selection)
                    .distinct()
                    .map(Path::of)
                    .toList();
        }
    }
}
