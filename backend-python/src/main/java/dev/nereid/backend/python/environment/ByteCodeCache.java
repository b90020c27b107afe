package dev.nereid.backend.python.environment;

import static java.nio.charset.StandardCharsets.UTF_8;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;

/**
 * Directories for the byte code of models, outside of the repository. Immutable; safe for use by any thread.
 *
 * <p>Each model directory has one, named by its path. Of many the oldest are removed: the byte code is made again when
 * it is needed.
 */
final class ByteCodeCache {
    /** The number of directories that are kept. */
    static final int MAX_DIRECTORIES = 256;

    private final Path root;

    ByteCodeCache(Path cacheDirectory) {
        root = cacheDirectory.resolve("pycache");
    }

    /** Returns the directory for a model or backend, made if it can be: where it cannot, Python keeps no byte code. */
    Path prefix(Path directory) {
        byte[] name = directory.toAbsolutePath().normalize().toString().getBytes(UTF_8);
        Path prefix = root.resolve(Digests.of(name));
        try {
            boolean isNew = !Files.isDirectory(prefix);
            Files.createDirectories(prefix);
            Files.setLastModifiedTime(prefix, FileTime.from(Instant.now()));
            if (isNew) {
                removeOldest(prefix);
            }
        } catch (IOException e) {
            return prefix; // read-only: the present files are used
        }
        return prefix;
    }

    private void removeOldest(Path kept) throws IOException {
        List<Dated> directories = new ArrayList<>();
        try (Stream<Path> all = Files.list(root)) {
            for (Path directory : all.filter(path -> !path.equals(kept)).toList()) {
                directories.add(new Dated(directory, Files.getLastModifiedTime(directory)));
            }
        }
        int surplus = directories.size() + 1 - MAX_DIRECTORIES;
        directories.stream()
                .sorted(Comparator.comparing(Dated::used))
                .limit(Math.max(0, surplus))
                .forEach(oldest -> FileTrees.remove(oldest.directory()));
    }

    /** A directory and its last use. */
    private record Dated(Path directory, FileTime used) {}
}
