package dev.nereid.backend.tensorflow.capi;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.ArrayList;
import java.util.List;
import java.util.stream.Stream;

/**
 * Finds the one file from which this process may load TensorFlow. Stateless; called under {@link TfLibrary}'s lock.
 *
 * <p>A process that has TensorFlow mapped can only open the same file again: a second copy would register the same
 * protobuf messages, which aborts the process. So a mapped copy of the same content is used where it lies, perhaps in
 * the cache of an earlier version of the plugin; a copy of another content is refused.
 */
final class NativeLibrary {
    private static final String NATIVES = "natives";

    private NativeLibrary() {}

    /**
     * Returns the library of this process's platform, unpacked.
     *
     * @param plugin the directory of the plugin, whose directory {@code natives} holds the artifact
     * @param classes finds an artifact among the plugin's own jars otherwise
     * @param cache the directory to unpack into
     * @throws IOException if the artifact is missing or damaged, or cannot be unpacked
     * @throws IllegalStateException if another TensorFlow is loaded in this process
     */
    static Path find(NativePlatform platform, Path plugin, ClassLoader classes, Path cache) throws IOException {
        List<Path> mapped = LoadedLibraries.named(platform.libraryFile());
        return find(platform, plugin, classes, cache, mapped, Disk.SYSTEM);
    }

    /** Finds the library as {@link #find(NativePlatform, Path, ClassLoader, Path)} in a process with mapped copies. */
    static Path find(
            NativePlatform platform, Path plugin, ClassLoader classes, Path cache, List<Path> mapped, Disk disk)
            throws IOException {
        LibraryArchive archive = LibraryArchive.in(artifacts(platform, plugin, classes), platform);
        for (Path library : mapped) {
            Path directory = library.resolveSibling("");
            if (!directory.endsWith(archive.directoryName()) && !archive.isSameContent(library)) {
                throw new IllegalStateException("another TensorFlow is loaded in this process, from "
                        + directory.getFileName() + " (expected: " + archive.directoryName()
                        + "): restart the server to use this one");
            }
        }
        if (!mapped.isEmpty()) {
            return mapped.getFirst();
        }
        return new LibraryDirectory(archive, cache, disk)
                .unpack(() ->
                        OldLibraries.remove(cache, archive.directoryName(), platform.libraryFile(), Instant.now()));
    }

    private static List<Path> artifacts(NativePlatform platform, Path plugin, ClassLoader classes) throws IOException {
        List<Path> artifacts = new ArrayList<>();
        Path natives = plugin.resolve(NATIVES);
        if (Files.isDirectory(natives)) {
            try (Stream<Path> files = Files.list(natives)) {
                files.filter(file -> file.getFileName().toString().endsWith(".jar"))
                        .sorted()
                        .forEach(artifacts::add);
            }
        }
        for (String prefix : platform.prefixes()) {
            URL resource = classes.getResource(prefix + platform.libraryFile());
            if (resource != null && resource.getProtocol().equals("jar")) {
                String path = resource.getPath();
                artifacts.add(file(path.substring(0, path.indexOf("!/"))));
            }
        }
        return artifacts;
    }

    private static Path file(String url) throws IOException {
        try {
            return Path.of(new URI(url));
        } catch (URISyntaxException e) {
            throw new IOException(url + ": not a file", e);
        }
    }
}
