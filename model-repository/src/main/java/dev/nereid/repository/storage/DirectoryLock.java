package dev.nereid.repository.storage;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * Locks a directory for one server, until it is closed or the process ends. Safe for use by any thread.
 *
 * <p>File locks belong to the process, and Linux releases them when the process closes any channel of the file. So a file
 * that a server of this process has locked is not opened again.
 */
final class DirectoryLock implements AutoCloseable {
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

    /**
     * Locks an existing directory.
     *
     * @return the lock; empty if another server uses the directory, of this process or of another
     */
    static Optional<DirectoryLock> tryLock(Path directory) throws IOException {
        Path file = directory.toRealPath().resolve("lock");
        if (!HELD.add(file)) {
            return Optional.empty();
        }
        boolean locked = false;
        try {
            FileChannel kept = KEPT.remove(file);
            FileChannel channel =
                    kept != null ? kept : FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
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
