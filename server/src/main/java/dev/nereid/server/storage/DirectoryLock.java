package dev.nereid.server.storage;

import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.Optional;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/**
 * The right of one server to use a directory, until it is closed or the process ends. Safe for use by any thread.
 *
 * <p>File locks belong to the process, and Linux releases them when the process closes any channel of the file. So a file
 * that a server of this process has locked is not opened again.
 */
final class DirectoryLock implements AutoCloseable {
    /** The files that servers of this process have locked, or try to lock. */
    private static final Set<Path> HELD = ConcurrentHashMap.newKeySet();

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
            FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
            try {
                FileLock lock = channel.tryLock();
                locked = lock != null;
            } finally {
                if (!locked) {
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

    /** Lets other servers use the directory. Called once. */
    @Override
    public void close() throws IOException {
        try {
            channel.close();
        } finally {
            HELD.remove(file);
        }
    }
}
