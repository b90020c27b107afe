package dev.nereid.backend.natives;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;
import java.util.stream.Stream;

/**
 * Removes libraries of other versions and the rest of interrupted unpacking from a cache. Stateless.
 *
 * <p>Libraries that a process has mapped stay. Libraries of processes that this process may not inspect are treated as
 * unused: such a process goes on with the files that the system keeps for it.
 */
final class OldLibraries {
    /** Unpacking takes seconds, and minutes on a slow disk. */
    private static final Duration LONGEST_UNPACKING = Duration.ofHours(1);

    private OldLibraries() {}

    /**
     * Removes what no process uses; does nothing on a system without {@code /proc}. What cannot be removed stays, and
     * so does {@code current}, the name of the directory in use from now on.
     */
    static void remove(NativeProduct product, Path cache, String current, Instant now) {
        try (Stream<Path> entries = Files.list(cache)) {
            List<Path> old =
                    entries.filter(entry -> isOld(product, entry, current, now)).toList();
            if (old.isEmpty() || !LoadedLibraries.isKnown()) {
                return;
            }
            Set<String> used = LoadedLibraries.ofAllProcesses(product.library()).stream()
                    .map(library -> String.valueOf(library.resolveSibling("").getFileName()))
                    .collect(Collectors.toSet());
            for (Path directory : old) {
                if (!used.contains(directory.getFileName().toString())) {
                    LibraryDirectory.delete(directory);
                }
            }
        } catch (IOException | UncheckedIOException e) {
            // Another process removes it too, or it belongs to another user: nothing depends on it.
        }
    }

    private static boolean isOld(NativeProduct product, Path entry, String current, Instant now) {
        String name = entry.getFileName().toString();
        if (product.names(name)) {
            return !name.equals(current);
        }
        try {
            return name.startsWith(product.partialPrefix())
                    && Files.getLastModifiedTime(entry).compareTo(FileTime.from(now.minus(LONGEST_UNPACKING))) < 0;
        } catch (IOException e) {
            return false; // it is gone
        }
    }
}
