package dev.nereid.backend.natives;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * Finds the one directory from which this process may load a framework. Stateless.
 *
 * <p>A process that has a framework mapped should only open the same files again: a second copy would register the same
 * things twice, which aborts the process with TensorFlow. So a mapped copy of the same content is used where it lies,
 * perhaps in the cache of an earlier version of the plugin; a copy of another content is refused.
 */
public final class LibraryDirectory {
    private LibraryDirectory() {}

    /**
     * Returns the directory with the unpacked libraries, unpacking them first if this process and the cache lack
     * them. Other processes may do the same at the same time.
     *
     * <p>The caller has a lock of the whole process from before this call until the libraries are loaded, whichever
     * class loader loads it. Blocks while it reads and writes files: seconds for hundreds of megabytes.
     *
     * @param product the framework
     * @param archive its packed libraries, one of which is {@link NativeProduct#library()}
     * @param cache the absolute path of the directory to unpack into; created if it is missing
     * @return the absolute path of the directory, which nobody changes while this process has the libraries mapped
     * @throws IOException if the libraries cannot be unpacked, or a jar is damaged. The text is for clients too: it has no
     *     path
     * @throws IllegalStateException if this process has libraries of the framework with another content
     */
    public static Path find(NativeProduct product, LibraryArchive archive, Path cache) throws IOException {
        return find(product, archive, cache, LoadedLibraries.named(product.library()), Disk.SYSTEM);
    }

    /** Finds the directory as {@link #find(NativeProduct, LibraryArchive, Path)} in a process with mapped copies. */
    static Path find(NativeProduct product, LibraryArchive archive, Path cache, List<Path> mapped, Disk disk)
            throws IOException {
        String name = archive.directoryName(product);
        for (Path library : mapped) {
            Path directory = library.resolveSibling("");
            if (!directory.endsWith(name) && !archive.isSameContent(directory)) {
                throw new IllegalStateException("another " + product.name() + " is loaded in this process, from "
                        + directory.getFileName() + " (expected: " + name + "): restart the server to use this one");
            }
        }
        if (!mapped.isEmpty()) {
            return mapped.getFirst().resolveSibling("");
        }
        return new Unpacking(product, archive, cache, disk)
                .directory(() -> OldLibraries.remove(product, cache, name, Instant.now()));
    }

    /** Removes a directory, if it exists, with all that is in it; after a failure some of it may be gone. */
    public static void delete(Path directory) throws IOException {
        if (!Files.exists(directory)) {
            return;
        }
        List<Path> entries;
        try (Stream<Path> walk = Files.walk(directory)) {
            entries = walk.sorted(Comparator.reverseOrder()).toList();
        }
        for (Path entry : entries) {
            Files.deleteIfExists(entry);
        }
    }
}
