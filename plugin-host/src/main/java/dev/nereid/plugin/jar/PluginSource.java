package dev.nereid.plugin.jar;

import java.io.IOException;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * A plugin on disk: its name, directory and jars. Immutable.
 *
 * @param name the name of its directory, or of its jar without the extension
 * @param jars its jars by name; empty for a directory without any
 */
public record PluginSource(String name, Path directory, List<Path> jars) {
    private static final int MAX_DEPTH = 16;
    private static final int MAX_FILES = 10_000;

    public PluginSource {
        jars = List.copyOf(jars);
    }

    /** Identifies the plugin among all, by a path that no other plugin has. There need not be such a file. */
    public Path path() {
        return directory.resolve(name);
    }

    /**
     * Returns a text that changes with its jars, or with the files of a directory without any, ten thousand of them at most.
     * Reads their sizes and times, and not their content; blocks.
     *
     * @return the text; of no meaning, but equal while nothing is written
     */
    public String stamp() {
        StringBuilder text = new StringBuilder();
        for (Path file : jars.isEmpty() ? files() : jars) {
            text.append(file).append(' ').append(stamp(file)).append('\n');
        }
        return text.toString();
    }

    /** Lists the files of the directory in their order, without hidden files and compiled Python files. */
    private List<Path> files() {
        List<Path> found = new ArrayList<>();
        try {
            Path root = directory.toRealPath(); // it may be a link
            Files.walkFileTree(root, Set.of(), MAX_DEPTH, new SimpleFileVisitor<>() {
                @Override
                public FileVisitResult preVisitDirectory(Path path, BasicFileAttributes attributes) {
                    String name = path.getFileName().toString();
                    boolean counts = path.equals(root) || !(name.startsWith(".") || name.equals("__pycache__"));
                    return counts ? FileVisitResult.CONTINUE : FileVisitResult.SKIP_SUBTREE;
                }

                @Override
                public FileVisitResult visitFile(Path path, BasicFileAttributes attributes) {
                    if (!path.getFileName().toString().startsWith(".")) {
                        found.add(path);
                    }
                    return found.size() < MAX_FILES ? FileVisitResult.CONTINUE : FileVisitResult.TERMINATE;
                }

                @Override
                public FileVisitResult visitFileFailed(Path path, IOException failure) {
                    return FileVisitResult.CONTINUE; // deleted meanwhile, or not to be read
                }
            });
        } catch (IOException e) {
            return List.of(); // deleted meanwhile, or not to be read
        }
        found.sort(Comparator.naturalOrder());
        return found;
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
