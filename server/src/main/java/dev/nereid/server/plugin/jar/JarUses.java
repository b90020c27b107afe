package dev.nereid.server.plugin.jar;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.time.Duration;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Says which copies of jars are in use, by this process and by others. Safe for use by any thread; blocks.
 *
 * <p>A process holds a shared lock on a file for each copy that it has used, until it ends: class loaders read their jars
 * at any time. The time of the file is that of the last use. Locks belong to the process, so that they are kept for all
 * servers in it.
 */
final class JarUses {
    private static final ReentrantLock LOCK = new ReentrantLock();

    /** The locked files of this process. They are never closed. */
    @GuardedBy("LOCK")
    private static final Map<Path, FileChannel> HELD = new HashMap<>();

    private final Path directory;

    /**
     * Creates the uses of a directory with copies.
     *
     * @param directory holds the lock files; created when first needed
     */
    JarUses(Path directory) {
        this.directory = directory.toAbsolutePath();
    }

    /** Removes a copy. */
    @FunctionalInterface
    interface Removal {
        void run() throws IOException;
    }

    /** Takes note that a copy is used from now on, before it is looked at. Waits while another process removes it. */
    void begin(String copy) throws IOException {
        Path file = file(copy);
        LOCK.lock();
        try {
            if (!HELD.containsKey(file)) {
                Files.createDirectories(directory);
                FileChannel channel = open(file);
                try {
                    channel.lock(0, Long.MAX_VALUE, true);
                    HELD.put(file, channel);
                } finally {
                    if (!HELD.containsKey(file)) {
                        channel.close();
                    }
                }
            }
            Files.setLastModifiedTime(file, FileTime.from(Instant.now()));
        } finally {
            LOCK.unlock();
        }
    }

    /**
     * Removes a copy that no process uses, if it was not used for some time.
     *
     * @return whether it was removed
     */
    boolean removeUnused(String copy, Instant now, Duration unused, Removal removal) throws IOException {
        Path file = file(copy);
        LOCK.lock();
        try {
            if (HELD.containsKey(file)) {
                return false;
            }
            Files.createDirectories(directory);
            try (FileChannel channel = open(file);
                    FileLock lock = channel.tryLock()) {
                boolean isOld = Files.getLastModifiedTime(file).toInstant().isBefore(now.minus(unused));
                if (lock == null || !isOld) {
                    return false;
                }
                removal.run();
                return true;
            }
        } finally {
            LOCK.unlock();
        }
    }

    private static FileChannel open(Path file) throws IOException {
        return FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.READ, StandardOpenOption.WRITE);
    }

    private Path file(String copy) {
        return directory.resolve(copy);
    }
}
