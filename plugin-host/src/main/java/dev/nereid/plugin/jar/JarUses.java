package dev.nereid.plugin.jar;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.channels.OverlappingFileLockException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.HashMap;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;
import org.jspecify.annotations.Nullable;

/**
 * Records which copies of jars are in use by this and other processes. Safe for use by any thread; blocks.
 *
 * <p>Class loaders read their jars at any time. While servers use a copy, they hold the lock on a file beside it, one
 * for all servers of a class loader: the close of a file ends all locks that the process has on it, including the locks
 * of servers of another class loader. The file's name has the process and the class loader, so that nothing else in the
 * process opens it.
 *
 * <p>A copy has one more file. Its time is the time of the last use. Its lock is held while a use begins, and while the
 * copy is removed.
 */
final class JarUses {
    private static final ReentrantLock LOCK = new ReentrantLock();

    /** Identifies this process among all that use the directory, also in other containers. */
    private static final String PROCESS = ProcessHandle.current().pid() + "-"
            + ProcessHandle.current()
                    .info()
                    .startInstant()
                    .map(Instant::toEpochMilli)
                    .orElse(0L)
            + "-";

    /** Identifies the class loader of this class. */
    private static final String OWNER = PROCESS + UUID.randomUUID();

    /** How long others in the process may hold a lock, which they do for the time of a removal. */
    private static final long PATIENCE_NANOS = TimeUnit.SECONDS.toNanos(30);

    private static final long RETRY_NANOS = TimeUnit.MILLISECONDS.toNanos(1);

    /** The locked file of a copy, and how often the copy is used. Guarded by the lock. */
    private static final class Use {
        private final FileChannel file;
        private int count;

        Use(FileChannel file) {
            this.file = file;
        }
    }

    /** The copies that the servers of this class loader use. */
    @GuardedBy("LOCK")
    private static final Map<Path, Use> HELD = new HashMap<>();

    private final Path directory;

    /** Creates the uses of a directory with copies. It holds the lock files, and is created when first needed. */
    JarUses(Path directory) {
        this.directory = directory.toAbsolutePath();
    }

    /** Removes a copy. */
    @FunctionalInterface
    interface Removal {
        void run() throws IOException;
    }

    /** Takes a lock of a file, or none. */
    @FunctionalInterface
    private interface Locking {
        @Nullable
        FileLock lock() throws IOException;
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
                use = new Use(register(copy));
                HELD.put(file, use);
            }
            Files.setLastModifiedTime(file, FileTime.from(Instant.now()));
            use.count++;
        } finally {
            LOCK.unlock();
        }
    }

    /** Locks the file of this class loader; the file of the copy is locked meanwhile. */
    private FileChannel register(String copy) throws IOException {
        try (FileChannel beginning = open(file(copy))) {
            if (alone(beginning::tryLock) == null) { // another process begins a use too, or removes the copy
                FileLock _ = alone(() -> beginning.lock(0, Long.MAX_VALUE, true));
            } else {
                boolean _ = isUsed(copy); // removes what processes have left that were killed
            }
            FileChannel channel = open(useOf(file(copy)));
            boolean isLocked = false;
            try {
                channel.lock();
                isLocked = true;
                return channel;
            } finally {
                if (!isLocked) {
                    channel.close();
                }
            }
        }
    }

    /** Takes a lock when no server of another class loader in this process holds it. */
    private static @Nullable FileLock alone(Locking locking) throws IOException {
        long begin = System.nanoTime();
        while (true) {
            try {
                return locking.lock();
            } catch (OverlappingFileLockException e) {
                if (System.nanoTime() - begin > PATIENCE_NANOS) {
                    throw new IOException("copy of jars: still locked in this process", e);
                }
                LockSupport.parkNanos(RETRY_NANOS);
            }
        }
    }

    void end(String copy) throws IOException {
        Path file = file(copy);
        LOCK.lock();
        try {
            Use use = HELD.get(file);
            if (use != null && --use.count == 0) {
                HELD.remove(file);
                use.file.close(); // releases the lock
                Files.deleteIfExists(useOf(file));
            }
        } finally {
            LOCK.unlock();
        }
    }

    /** Removes a copy that no process uses, if it was last used before a time. */
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
            try (FileChannel channel = open(file)) {
                if (alone(channel::tryLock) == null || !isOld(file, before) || isUsed(copy)) {
                    return false;
                }
                removal.run();
                return true;
            }
        } finally {
            LOCK.unlock();
        }
    }

    /**
     * Returns whether any process uses a copy. Removes the files of processes that have ended without doing so. The lock of
     * the copy is held, so that no use begins.
     */
    private boolean isUsed(String copy) throws IOException {
        boolean isUsed = false;
        try (DirectoryStream<Path> uses = Files.newDirectoryStream(directory, copy + ".*")) {
            for (Path use : uses) {
                isUsed |= isOfThisProcess(copy, use) || !removeUnlocked(use);
            }
        }
        return isUsed;
    }

    private static boolean isOfThisProcess(String copy, Path use) {
        return String.valueOf(use.getFileName()).startsWith(copy + "." + PROCESS);
    }

    private static boolean removeUnlocked(Path use) throws IOException {
        try (FileChannel channel = open(use);
                FileLock lock = channel.tryLock()) {
            if (lock == null) {
                return false;
            }
            Files.deleteIfExists(use);
            return true;
        }
    }

    private static boolean isOld(Path file, Instant before) throws IOException {
        return Files.getLastModifiedTime(file).toInstant().isBefore(before);
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

    /** Returns the file that this class loader locks while it uses a copy. */
    private static Path useOf(Path file) {
        return file.resolveSibling(file.getFileName() + "." + OWNER);
    }
}
