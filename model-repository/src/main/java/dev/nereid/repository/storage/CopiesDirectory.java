package dev.nereid.repository.storage;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.HexFormat;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicLong;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The directory with the local copies of one repository, for one server alone. Safe for use by any thread.
 *
 * <p>It holds {@code copies/FINGERPRINT/} with a manifest and the directory of a model each; {@code partial/} with
 * everything that is incomplete or being deleted; and {@code lock}. A copy enters and leaves {@code copies} by one
 * rename. The next open deletes files that a process left in {@code partial}, and copies without a manifest.
 */
final class CopiesDirectory implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(CopiesDirectory.class);

    /** Servers that share one directory and serve one repository. */
    private static final int MAX_SERVERS = 64;

    private static final int ID_DIGITS = 16;

    private final Path path;
    private final LocalFiles files;
    private final DirectoryLock lock;
    private final AtomicLong partials = new AtomicLong();

    private CopiesDirectory(Path path, LocalFiles files, DirectoryLock lock) {
        this.path = path;
        this.files = files;
        this.lock = lock;
    }

    /**
     * Opens the directory of a repository. The first that no other server uses is taken.
     *
     * @param base the directory that holds it; created if it is missing
     * @param location the URL of the repository
     */
    static CopiesDirectory open(Path base, String location, LocalFiles files) throws IOException {
        Path root = base.toAbsolutePath().normalize();
        createDirectories(root, files);
        byte[] digest = Fingerprint.sha256().digest(location.getBytes(StandardCharsets.UTF_8));
        String id = HexFormat.of().formatHex(digest).substring(0, ID_DIGITS);
        for (int number = 0; number < MAX_SERVERS; number++) {
            Path path = root.resolve(id + "-" + number);
            createDirectories(path, files);
            Optional<DirectoryLock> lock = DirectoryLock.tryLock(path);
            if (lock.isPresent()) {
                CopiesDirectory opened = new CopiesDirectory(path, files, lock.get());
                boolean cleaned = false;
                try {
                    opened.clean();
                    cleaned = true;
                    return opened;
                } finally {
                    if (!cleaned) {
                        lock.get().close();
                    }
                }
            }
        }
        throw new IOException("all " + MAX_SERVERS + " directories " + id + "-… in " + root
                + " are used by other servers (expected: one that is free)");
    }

    Path path() {
        return path;
    }

    /** Returns the directory of a copy, which need not exist. */
    Path copy(String fingerprint) {
        return path.resolve("copies").resolve(fingerprint);
    }

    /** Creates a directory for an incomplete copy. */
    Path newPartial() throws IOException {
        Path partial = unusedPartial();
        files.createDirectory(partial);
        return partial;
    }

    /** Makes a partial copy, to which nothing is added any more, a complete one. */
    void publish(Path partial, String fingerprint) throws IOException {
        files.move(partial, copy(fingerprint));
    }

    /** Takes a copy out of the complete ones; returns it as a partial one, to be deleted. */
    Path unpublish(String fingerprint) throws IOException {
        Path partial = unusedPartial();
        files.move(copy(fingerprint), partial);
        return partial;
    }

    /** Syncs the names of the complete copies to the disk. */
    void sync() throws IOException {
        files.syncDirectory(path.resolve("copies"));
    }

    /** Deletes a partial copy; failures are logged, and the next open tries again. */
    void discard(Path partial) {
        try {
            files.delete(partial);
        } catch (IOException e) {
            LOG.atWarn()
                    .addKeyValue("directory", partial)
                    .setCause(e)
                    .log("partial copy could not be deleted ({})", partial);
        }
    }

    List<CopyManifest> manifests() throws IOException {
        List<CopyManifest> manifests = new ArrayList<>();
        for (Path copy : list(path.resolve("copies"))) {
            manifest(copy).ifPresent(manifests::add);
        }
        return manifests;
    }

    /** Releases the directory for other servers. Its copies stay. */
    @Override
    public void close() {
        try {
            lock.close();
        } catch (IOException e) {
            LOG.atWarn().addKeyValue("directory", path).setCause(e).log("lock could not be released ({})", path);
        }
    }

    private void clean() throws IOException {
        files.delete(path.resolve("partial"));
        createDirectories(path.resolve("partial"), files);
        createDirectories(path.resolve("copies"), files);
        for (Path copy : list(path.resolve("copies"))) {
            if (manifest(copy).isEmpty()) {
                Path partial = unusedPartial();
                files.move(copy, partial);
                files.delete(partial);
            }
        }
    }

    private Path unusedPartial() {
        return path.resolve("partial").resolve(String.valueOf(partials.getAndIncrement()));
    }

    private static Optional<CopyManifest> manifest(Path copy) throws IOException {
        return CopyManifest.read(copy)
                .filter(manifest -> copy.endsWith(manifest.fingerprint()))
                .filter(manifest -> ObjectKeys.nameViolation(manifest.model()).isEmpty());
    }

    private static List<Path> list(Path directory) throws IOException {
        try (Stream<Path> entries = Files.list(directory)) {
            return entries.sorted().toList();
        }
    }

    private static void createDirectories(Path directory, LocalFiles files) throws IOException {
        if (Files.isDirectory(directory)) {
            return;
        }
        if (Files.exists(directory, LinkOption.NOFOLLOW_LINKS)) {
            throw new IOException(directory + " is no directory (expected: a directory for copies of models)");
        }
        Path parent = directory.getParent();
        if (parent != null) {
            createDirectories(parent, files);
        }
        files.createDirectory(directory);
    }

    /**
     * Locks a directory for one server, until it is closed or the process ends. Safe for use by any thread.
     *
     * <p>File locks belong to the process, and Linux releases them when the process closes any channel of the file. So a file
     * that a server of this process has locked is not opened again.
     */
    private static final class DirectoryLock implements AutoCloseable {
        /** The files that servers of this process have locked, or try to lock. */
        private static final Set<Path> HELD = ConcurrentHashMap.newKeySet();

        /**
         * The channels of files that a server of another class loader has locked. They stay open, since the close of one
         * would end that lock, and are used by the next attempt.
         */
        private static final Map<Path, FileChannel> KEPT = new ConcurrentHashMap<>();

        private final Path file;
        private final FileChannel channel;

        private DirectoryLock(Path file, FileChannel channel) {
            this.file = file;
            this.channel = channel;
        }

        /** Locks an existing directory; empty if another server uses it, of this process or of another. */
        static Optional<DirectoryLock> tryLock(Path directory) throws IOException {
            Path file = directory.toRealPath().resolve("lock");
            if (!HELD.add(file)) {
                return Optional.empty();
            }
            boolean locked = false;
            try {
                FileChannel kept = KEPT.remove(file);
                FileChannel channel = kept != null
                        ? kept
                        : FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                boolean isKept = false;
                try {
                    FileLock lock = channel.tryLock();
                    locked = lock != null;
                } catch (OverlappingFileLockException _) {
                    KEPT.put(file, channel);
                    isKept = true;
                } finally {
                    if (!locked && !isKept) {
                        channel.close();
                    }
                }
                return locked ? Optional.of(new DirectoryLock(file, channel)) : Optional.empty();
            } finally {
                if (!locked) {
                    HELD.remove(file);
                }
            }
        }

        /** Releases the directory for other servers. Called once. */
        @Override
        public void close() throws IOException {
            try {
                channel.close();
            } finally {
                HELD.remove(file);
            }
        }
    }
}
