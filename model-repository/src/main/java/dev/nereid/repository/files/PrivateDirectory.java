package dev.nereid.repository.files;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileAttribute;
import java.nio.file.attribute.PosixFilePermissions;
import java.time.Duration;
import java.time.Instant;
import java.util.Comparator;
import java.util.List;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.locks.ReentrantLock;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * A directory of one server process that its user alone may read. Safe for use by any thread; blocks.
 *
 * <p>It is created when it is first needed, and removed with the server. One that a killed server left behind is removed
 * by the next: a server holds a lock on its own, which the operating system releases with the process.
 */
public final class PrivateDirectory implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(PrivateDirectory.class);
    private static final String LOCK = ".lock";
    private static final Duration STARTING = Duration.ofHours(1);
    private static final FileAttribute<?> OWNER_ONLY =
            PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rwx------"));

    /**
     * The locked files of this process, which it does not open again: on some systems the end of any channel to a file
     * ends all locks of the process on it.
     */
    private static final Set<Path> OWN = ConcurrentHashMap.newKeySet();

    private final Path parent;
    private final String prefix;
    private final ReentrantLock lock = new ReentrantLock();

    @GuardedBy("lock")
    private @Nullable Path directory;

    @GuardedBy("lock")
    private @Nullable FileChannel locked;

    /**
     * Removes directories that killed servers left, and creates nothing yet.
     *
     * @param parent the directory that holds it, created when it is needed; empty for the directory of temporary files,
     *     in which nothing is removed
     * @param prefix how the names of all such directories begin
     */
    public PrivateDirectory(Path parent, String prefix) {
        this.parent = parent;
        this.prefix = prefix;
        removeLeftovers();
    }

    /**
     * Returns the directory, which is created by the first call.
     *
     * @return an existing directory
     * @throws IOException if it cannot be created
     */
    public Path create() throws IOException {
        lock.lock();
        try {
            return directory == null ? createLocked() : directory;
        } finally {
            lock.unlock();
        }
    }

    @GuardedBy("lock")
    private Path createLocked() throws IOException {
        Path file = newLock();
        FileChannel channel = null;
        boolean isCreated = false;
        try {
            OWN.add(file.toAbsolutePath());
            channel = FileChannel.open(file, StandardOpenOption.WRITE);
            channel.lock(); // before the directory exists: without a lock it would be taken for a leftover
            Path created = Files.createDirectory(withoutLock(file), OWNER_ONLY);
            locked = channel;
            directory = created;
            isCreated = true;
            return created;
        } finally {
            if (!isCreated) {
                remove(file);
                if (channel != null) {
                    channel.close();
                }
                OWN.remove(file.toAbsolutePath());
            }
        }
    }

    private Path newLock() throws IOException {
        if (parent.toString().isEmpty()) {
            return Files.createTempFile("nereid-" + prefix, LOCK);
        }
        Files.createDirectories(parent);
        return Files.createTempFile(parent, prefix, LOCK);
    }

    /** Returns whether the directory was created, and a file lies in it. */
    public boolean contains(Path file) {
        lock.lock();
        try {
            return directory != null && file.toAbsolutePath().startsWith(directory.toAbsolutePath());
        } finally {
            lock.unlock();
        }
    }

    @Override
    public void close() {
        lock.lock();
        try {
            if (directory != null && locked != null) {
                remove(directory);
                remove(lockOf(directory));
                locked.close();
                OWN.remove(lockOf(directory).toAbsolutePath());
                directory = null;
            }
        } catch (IOException e) {
            LOG.atWarn().setCause(e).log("private directory could not be removed");
        } finally {
            lock.unlock();
        }
    }

    private void removeLeftovers() {
        if (parent.toString().isEmpty() || !Files.isDirectory(parent)) {
            return;
        }
        try (DirectoryStream<Path> found = Files.newDirectoryStream(parent, prefix + "*")) {
            for (Path leftover : found) {
                boolean isLock = leftover.toString().endsWith(LOCK);
                if (isLock && !Files.exists(withoutLock(leftover)) && isOld(leftover) && isFree(leftover)) {
                    remove(leftover); // of a server that was killed before it created the directory
                } else if (Files.isDirectory(leftover) && isFree(lockOf(leftover))) {
                    LOG.atInfo()
                            .addKeyValue("directory", leftover)
                            .log("removes the files of a server that did not end properly ({})", leftover);
                    remove(leftover);
                    remove(lockOf(leftover));
                }
            }
        } catch (IOException e) {
            LOG.atWarn()
                    .addKeyValue("directory", parent)
                    .setCause(e)
                    .log("directory could not be searched ({})", parent);
        }
    }

    private static Path lockOf(Path directory) {
        return directory.resolveSibling(directory.getFileName() + LOCK);
    }

    /** Returns whether no server can still be about to lock a file that it created. */
    private static boolean isOld(Path file) throws IOException {
        try {
            Instant created = Files.getLastModifiedTime(file).toInstant();
            return created.isBefore(Instant.now().minus(STARTING));
        } catch (NoSuchFileException e) {
            return false; // removed with its directory meanwhile
        }
    }

    private static Path withoutLock(Path file) {
        String name = String.valueOf(file.getFileName());
        return file.resolveSibling(name.substring(0, name.length() - LOCK.length()));
    }

    /** Returns whether a lock exists that no process holds. A directory without a lock is none of a server. */
    private static boolean isFree(Path file) {
        if (OWN.contains(file.toAbsolutePath())) {
            return false;
        }
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE);
                FileLock free = channel.tryLock()) {
            return free != null;
        } catch (IOException | OverlappingFileLockException e) {
            return false; // not there, or in use in this process or by another
        }
    }

    /** Removes a file or directory, if it exists, and does not follow links. Failures are logged. */
    public static void remove(Path root) {
        if (!Files.exists(root, LinkOption.NOFOLLOW_LINKS)) {
            return;
        }
        List<Path> all = List.of();
        try (Stream<Path> found = Files.walk(root)) {
            all = found.sorted(Comparator.reverseOrder()).toList();
        } catch (IOException e) {
            LOG.atWarn().addKeyValue("directory", root).setCause(e).log("directory could not be removed ({})", root);
        }
        for (Path path : all) {
            try {
                Files.deleteIfExists(path);
            } catch (IOException e) {
                LOG.atWarn().addKeyValue("file", path).setCause(e).log("file could not be removed ({})", path);
            }
        }
    }
}
