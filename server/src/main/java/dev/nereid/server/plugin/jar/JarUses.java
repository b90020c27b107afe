package dev.nereid.server.plugin.jar;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Says which copies of jars are in use, by this process and by others. Safe for use by any thread; blocks.
 *
 * <p>A process holds a shared lock on a file for each copy while it uses it: class loaders read their jars at any time.
 * The time of the file is that of the last use. Locks belong to the process, so that uses are counted for all servers in
 * it.
 */
final class JarUses {
    private static final ReentrantLock LOCK = new ReentrantLock();

    /** The locked file of a copy, and how often the copy is used. Guarded by the lock. */
    private static final class Use {
        private final FileChannel file;
        private int count;

        Use(FileChannel file) {
            this.file = file;
        }
    }

    /** The copies that this process uses. */
    @GuardedBy("LOCK")
    private static final Map<Path, Use> HELD = new HashMap<>();

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

    /**
     * Records that a copy is used until {@link #end}, before it is read. Waits while another process removes it.
     */
    void begin(String copy) throws IOException {
        Path file = file(copy);
        LOCK.lock();
        try {
            Use use = HELD.get(file);
            if (use == null) {
                Files.createDirectories(directory);
                use = new Use(lock(file));
                HELD.put(file, use);
            }
            Files.setLastModifiedTime(file, FileTime.from(Instant.now()));
            use.count++;
        } finally {
            LOCK.unlock();
        }
    }

    private static FileChannel lock(Path file) throws IOException {
        FileChannel channel = open(file);
        boolean isLocked = false;
        try {
            channel.lock(0, Long.MAX_VALUE, true);
            isLocked = true;
            return channel;
        } catch (OverlappingFileLockException e) { // of a server of another class loader in this process
            isLocked = true;
            return channel;
        } finally {
            if (!isLocked) {
                channel.close();
            }
        }
    }

    /** Ends one use of a copy. */
    void end(String copy) throws IOException {
        Path file = file(copy);
        LOCK.lock();
        try {
            Use use = HELD.get(file);
            if (use != null && --use.count == 0) {
                HELD.remove(file);
                use.file.close(); // releases the lock
            }
        } finally {
            LOCK.unlock();
        }
    }

    /**
     * Removes a copy that no process uses, if it was last used before a time.
     *
     * @return whether it was removed
     */
    boolean removeUnused(String copy, Instant before, Removal removal) throws IOException {
        Path file = file(copy);
        LOCK.lock();
        try {
            if (HELD.containsKey(file)) {
                return false;
            }
            Files.createDirectories(directory);
            // Not opened in vain: the close of a file releases the locks that others in the process have on it.
            if (Files.exists(file) && !isOld(file, before)) {
                return false;
            }
            try (FileChannel channel = open(file);
                    FileLock lock = tryLock(channel)) {
                if (lock == null || !isOld(file, before)) {
                    return false;
                }
                removal.run();
                return true;
            }
        } finally {
            LOCK.unlock();
        }
    }

    private static boolean isOld(Path file, Instant before) throws IOException {
        return Files.getLastModifiedTime(file).toInstant().isBefore(before);
    }

    private static @Nullable FileLock tryLock(FileChannel channel) throws IOException {
        try {
            return channel.tryLock();
        } catch (OverlappingFileLockException e) { // used by a server of another class loader in this process
            return null;
        }
    }

    /** Returns the open file of a copy that is in use, which holds the lock; another object for one that is not. */
    Object held(String copy) {
        LOCK.lock();
        try {
            Use use = HELD.get(file(copy));
            return use == null ? copy : use.file;
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
