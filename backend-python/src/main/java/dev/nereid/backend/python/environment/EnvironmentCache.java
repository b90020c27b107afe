package dev.nereid.backend.python.environment;

import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;
import static java.util.concurrent.TimeUnit.SECONDS;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.File;
import java.io.FilterInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.lang.System.Logger;
import java.lang.System.Logger.Level;
import java.nio.channels.FileChannel;
import java.nio.channels.FileLock;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.time.Instant;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionException;
import java.util.concurrent.locks.ReentrantLock;
import java.util.function.LongSupplier;
import java.util.stream.Stream;
import org.jspecify.annotations.Nullable;

/**
 * Unpacked archives of environments, in the cache directory of the backend. Safe for use by any thread; guarded by its
 * lock.
 *
 * <p>A directory is named by the content of its archive, so that models, later starts and other servers find it. An
 * archive with a changed time is unpacked again, also with the same content. Directories stay when the backend is
 * closed; of the ones that no server uses, the {@value #MAX_UNUSED} that were used last are kept, and none where the
 * disk is short of space.
 *
 * <p>Files: {@code K} is an unpacked archive, moved into place as a whole; {@code K.use/I} says that cache {@code I}
 * uses it; {@code K.I.part} is an archive that {@code I} unpacks or removes; {@code I.lock} is locked as long as
 * {@code I} is open, so that files of a server that was killed are recognized. A cache of the same process is
 * recognized by the name: its file is not opened, since closing it would end the lock.
 */
final class EnvironmentCache implements AutoCloseable {
    /** The number of directories that stay without a user. */
    static final int MAX_UNUSED = 4;

    private static final String USE = ".use";
    private static final String PART = ".part";
    private static final String LOCK = ".lock";
    private static final long PROGRESS_NANOS = SECONDS.toNanos(10);
    private static final int UUID_LENGTH = 36;
    private static final int PERCENT = 100;
    private static final long MIB = 1 << 20;

    /** Unpacked archives are commonly three to four times as large. */
    private static final int EXPANSION = 4;

    private final Path root;
    private final LongSupplier nanoTime;
    private final String process;
    private final String id;
    private final ReentrantLock lock = new ReentrantLock();
    private volatile boolean isClosed;

    /** Known facts about each archive. */
    @GuardedBy("lock")
    private final Map<Path, Known> known = new HashMap<>();

    /** Unpacked archives in use, by key. */
    @GuardedBy("lock")
    private final Map<String, Unpacked> unpacked = new HashMap<>();

    /** Open and locked from the first use on. */
    @GuardedBy("lock")
    private @Nullable FileChannel ownLock;

    /** Time, size and identity of a file; a change of its content changes one of them. */
    private record Stamp(FileTime modified, long size, String identity) {
        static Stamp of(Path file) throws IOException {
            BasicFileAttributes attributes = Files.readAttributes(file, BasicFileAttributes.class);
            return new Stamp(
                    attributes.lastModifiedTime(),
                    attributes.size(),
                    attributes.fileKey() + " " + Files.getAttribute(file, "unix:ctime"));
        }
    }

    /** The key of an archive as it was last seen. */
    private record Known(Stamp stamp, String key) {}

    /** An unpacked archive that leases use. Their number is guarded by the lock of the cache. */
    private static final class Unpacked {
        final CompletableFuture<Path> directory = new CompletableFuture<>();
        int users;
    }

    /** The use of an unpacked archive. Closed by its owner, once or more. */
    final class Lease implements AutoCloseable {
        private final String key;
        private final Path directory;
        private boolean isReleased;

        Lease(String key, Path directory) {
            this.key = key;
            this.directory = directory;
        }

        /** Returns the directory; it is not changed or removed before the close. */
        Path directory() {
            return directory;
        }

        @Override
        public void close() {
            lock.lock();
            try {
                if (isReleased) {
                    return;
                }
                isReleased = true;
            } finally {
                lock.unlock();
            }
            release(key);
        }
    }

    /** Creates the cache; nothing is written before the first archive. The clock is for the lines about progress. */
    EnvironmentCache(Path cacheDirectory, LongSupplier nanoTime) {
        root = cacheDirectory.resolve("environments");
        this.nanoTime = nanoTime;
        ProcessHandle self = ProcessHandle.current();
        process = self.pid() + "-"
                + self.info().startInstant().orElse(Instant.EPOCH).toEpochMilli() + "-";
        id = process + UUID.randomUUID();
    }

    /**
     * Unpacks an archive, or finds it unpacked. Blocks, also while another thread unpacks it.
     *
     * @param archive the canonical path of the archive
     * @param log gets a line at the level DEBUG for each archive that is unpacked, and lines about the progress of
     *     large ones
     * @throws BackendException {@link ErrorCode#INTERNAL} if the archive is damaged, refused or not unpacked, {@link
     *     ErrorCode#UNAVAILABLE} if it changes meanwhile
     */
    Lease acquire(Path archive, Logger log) {
        try {
            Files.createDirectories(root);
            lockOwn();
            Stamp stamp = Stamp.of(archive);
            String key = key(archive, stamp, log);
            boolean isFirst;
            Unpacked entry;
            lock.lock();
            try {
                entry = unpacked.computeIfAbsent(key, _ -> new Unpacked());
                isFirst = entry.users++ == 0;
            } finally {
                lock.unlock();
            }
            if (isFirst) {
                open(key, archive, stamp, entry, log);
            }
            try {
                return new Lease(key, entry.directory.join());
            } catch (CompletionException e) {
                release(key);
                if (e.getCause() instanceof BackendException failure) {
                    throw failure;
                }
                throw e;
            }
        } catch (IOException e) {
            throw failure(archive, e);
        }
    }

    /** Ends the uses of this cache, and removes surplus directories. Unpacking that goes on fails soon. */
    @Override
    public void close() {
        isClosed = true;
        List<String> used;
        lock.lock();
        try {
            used = List.copyOf(unpacked.keySet());
            unpacked.clear();
        } finally {
            lock.unlock();
        }
        used.forEach(this::endUse);
        FileChannel locked;
        lock.lock();
        try {
            locked = ownLock;
            ownLock = null;
        } finally {
            lock.unlock();
        }
        if (locked != null) {
            trim(MAX_UNUSED);
            try (locked) {
                Files.deleteIfExists(root.resolve(id + LOCK));
            } catch (IOException e) {
                return; // the next server removes it
            }
        }
    }

    private void release(String key) {
        boolean isLast;
        lock.lock();
        try {
            Unpacked entry = unpacked.get(key);
            isLast = entry != null && --entry.users == 0;
            if (isLast) {
                unpacked.remove(key);
                endUse(key);
            }
        } finally {
            lock.unlock();
        }
        if (isLast) {
            trim(MAX_UNUSED);
        }
    }

    private void lockOwn() throws IOException {
        lock.lock();
        try {
            if (isClosed) {
                throw new IOException("the backend is closed");
            }
            Path file = root.resolve(id + LOCK);
            while (ownLock == null) {
                FileChannel channel = FileChannel.open(file, StandardOpenOption.CREATE, StandardOpenOption.WRITE);
                channel.lock();
                if (Files.exists(file)) {
                    ownLock = channel;
                } else { // another server has removed it between the two calls
                    channel.close();
                }
            }
        } finally {
            lock.unlock();
        }
    }

    private String key(Path archive, Stamp stamp, Logger log) throws IOException {
        Known before = knownOf(archive);
        if (before != null && before.stamp().equals(stamp)) {
            return before.key();
        }
        String digest;
        try (InputStream in = Files.newInputStream(archive)) {
            digest = Digests.of(in, new Progress(archive, stamp.size(), "read", log)::at);
        }
        boolean isTouched = before != null && !before.stamp().modified().equals(stamp.modified());
        String key =
                isTouched ? digest + "-" + Long.toHexString(stamp.modified().toMillis()) : digest;
        lock.lock();
        try {
            Known now = known.get(archive);
            if (now != null && now.stamp().equals(stamp)) { // another thread was first
                return now.key();
            }
            known.put(archive, new Known(stamp, key));
        } finally {
            lock.unlock();
        }
        return key;
    }

    private @Nullable Known knownOf(Path archive) {
        lock.lock();
        try {
            return known.get(archive);
        } finally {
            lock.unlock();
        }
    }

    private void open(String key, Path archive, Stamp stamp, Unpacked entry, Logger log) {
        try {
            Files.createDirectories(root.resolve(key + USE));
            Files.write(root.resolve(key + USE).resolve(id), new byte[0]);
            Path directory = root.resolve(key);
            if (Files.isDirectory(directory) && !Files.exists(directory.resolve("bin/activate"))) {
                remove(key, false); // damaged, or never complete
            }
            if (!Files.isDirectory(directory)) {
                unpack(key, archive, stamp, directory, log);
            }
            Files.setLastModifiedTime(directory, FileTime.from(Instant.now()));
            entry.directory.complete(directory);
        } catch (IOException e) {
            forget(archive);
            entry.directory.completeExceptionally(failure(archive, e));
        } catch (RuntimeException | Error e) {
            forget(archive);
            entry.directory.completeExceptionally(e);
        }
    }

    private void forget(Path archive) {
        lock.lock();
        try {
            known.remove(archive);
        } finally {
            lock.unlock();
        }
    }

    private void unpack(String key, Path archive, Stamp stamp, Path directory, Logger log) throws IOException {
        log.log(Level.DEBUG, () -> "Extracting Python execution env " + archive);
        removeParts();
        trim(space() / EXPANSION < stamp.size() ? 0 : MAX_UNUSED);
        Path part = Files.createDirectory(part(key));
        try {
            ArchiveUnpacker unpacker = new ArchiveUnpacker(part, this::space, () -> isClosed);
            Progress progress = new Progress(archive, stamp.size(), "unpacked", log);
            try (InputStream in = new CountedInput(Files.newInputStream(archive), progress)) {
                unpacker.unpack(in);
            }
            if (!Stamp.of(archive).equals(stamp)) {
                throw new BackendException(
                        ErrorCode.UNAVAILABLE,
                        "Python execution env " + archive + ": changed while it was unpacked (expected: a file that is"
                                + " complete before the model is loaded)");
            }
            if (unpacker.skippedCount() > 0) {
                log.log(
                        Level.WARNING,
                        () -> "Python execution env " + archive + ": " + unpacker.skippedCount()
                                + " files not unpacked, since the locale of the server cannot express their names: "
                                + String.join(", ", unpacker.skipped()) + " (expected: LC_ALL=C.UTF-8)");
            }
            try {
                Files.move(part, directory, ATOMIC_MOVE);
            } catch (IOException e) {
                if (!Files.isDirectory(directory)) {
                    throw e;
                } // another server has unpacked it meanwhile
            }
        } finally {
            FileTrees.remove(part);
        }
    }

    /** Returns the free bytes of the disk; very many where that is not known. */
    private long space() {
        File directory = root.toFile(); // FileStore fails in some containers
        return directory.getTotalSpace() == 0 ? Long.MAX_VALUE : directory.getUsableSpace();
    }

    private Path part(String key) {
        return root.resolve(key + "." + id + "-" + UUID.randomUUID() + PART);
    }

    /** Removes unused directories, but for the ones that were used last. */
    private void trim(int kept) {
        List<Unused> unused = new ArrayList<>();
        try (Stream<Path> all = Files.list(root)) {
            for (Path directory : all.toList()) {
                String name = directory.getFileName().toString();
                if (name.indexOf('.') < 0 && !isUsed(name, true)) {
                    unused.add(new Unused(name, Files.getLastModifiedTime(directory)));
                }
            }
        } catch (IOException e) {
            return; // changed by another server, which removes surplus directories too
        }
        unused.stream()
                .sorted(Comparator.comparing(Unused::used).reversed())
                .skip(kept)
                .forEach(directory -> remove(directory.key(), true));
    }

    /** A directory that no server uses. */
    private record Unused(String key, FileTime used) {}

    /** Removes a directory, unless another cache uses it, or this one. */
    private void remove(String key, boolean countsOwn) {
        if (isUsed(key, countsOwn)) {
            return;
        }
        Path directory = root.resolve(key);
        Path part = part(key);
        try {
            Files.move(directory, part, ATOMIC_MOVE);
            if (isUsed(key, countsOwn)) { // since then
                Files.move(part, directory, ATOMIC_MOVE);
                return;
            }
            Files.deleteIfExists(root.resolve(key + USE));
        } catch (IOException e) {
            return; // another server removes it, uses it or has unpacked it again
        } finally {
            FileTrees.remove(part);
        }
    }

    /** Returns whether another cache, or this one, uses a directory; uses of ended servers are removed. */
    private boolean isUsed(String key, boolean countsOwn) {
        Path uses = root.resolve(key + USE);
        if (!Files.isDirectory(uses)) {
            return false;
        }
        boolean isUsed = false;
        try (Stream<Path> all = Files.list(uses)) {
            for (Path use : all.toList()) {
                String user = use.getFileName().toString();
                if (user.equals(id)) {
                    isUsed |= countsOwn;
                } else if (isOpen(user)) {
                    isUsed = true;
                } else {
                    Files.deleteIfExists(use);
                }
            }
        } catch (IOException e) {
            return true; // not known
        }
        return isUsed;
    }

    /** Returns whether a cache of this or another process is open. */
    private boolean isOpen(String user) throws IOException {
        Path file = root.resolve(user + LOCK);
        if (user.startsWith(process) || !Files.exists(file)) {
            return Files.exists(file);
        }
        try (FileChannel channel = FileChannel.open(file, StandardOpenOption.WRITE);
                FileLock locked = channel.tryLock()) {
            if (locked == null) {
                return true;
            }
            Files.deleteIfExists(file);
            return false;
        }
    }

    /** Removes what servers have left that were killed. */
    private void removeParts() {
        try (Stream<Path> all = Files.list(root)) {
            for (Path path : all.toList()) {
                String name = path.getFileName().toString();
                if (name.endsWith(PART)) {
                    String user = name.substring(name.indexOf('.') + 1, name.length() - PART.length());
                    if (!isOpen(user.substring(0, Math.max(0, user.length() - 1 - UUID_LENGTH)))) {
                        FileTrees.remove(path);
                    }
                } else if (name.endsWith(LOCK) && !name.startsWith(process)) {
                    isOpen(name.substring(0, name.length() - LOCK.length())); // removes the file of an ended server
                }
            }
        } catch (IOException e) {
            return; // for the next time
        }
    }

    private void endUse(String key) {
        try {
            Files.deleteIfExists(root.resolve(key + USE).resolve(id));
        } catch (IOException e) {
            return; // the lock file says that it is over
        }
    }

    private static BackendException failure(Path archive, IOException e) {
        String reason = e instanceof ArchiveException ? e.getMessage() : e.toString();
        return new BackendException(
                ErrorCode.INTERNAL, "Failed to extract Python execution env " + archive + ": " + reason, e);
    }

    /** Logs how much of an archive is done, each ten seconds. Confined to one thread. */
    private final class Progress {
        private final Path archive;
        private final long size;
        private final String verb;
        private final Logger log;
        private long next = nanoTime.getAsLong() + PROGRESS_NANOS;

        Progress(Path archive, long size, String verb, Logger log) {
            this.archive = archive;
            this.size = size;
            this.verb = verb;
            this.log = log;
        }

        void at(long done) {
            long now = nanoTime.getAsLong();
            if (now - next >= 0) {
                next = now + PROGRESS_NANOS;
                long percent = size == 0 ? PERCENT : Math.min(PERCENT, done * PERCENT / size);
                log.log(
                        Level.INFO,
                        () -> "Python execution env " + archive + ": " + percent + " % of " + (size + MIB - 1) / MIB
                                + " MiB " + verb);
            }
        }
    }

    /** Counts the bytes that are read. Confined to one thread. */
    private static final class CountedInput extends FilterInputStream {
        private final Progress progress;
        private long count;

        CountedInput(InputStream in, Progress progress) {
            super(in);
            this.progress = progress;
        }

        @Override
        public int read() throws IOException {
            int value = super.read();
            count += value < 0 ? 0 : 1;
            return value;
        }

        @Override
        public int read(byte[] buffer, int offset, int length) throws IOException {
            int read = super.read(buffer, offset, length);
            count += Math.max(0, read);
            progress.at(count);
            return read;
        }

        @Override
        public boolean markSupported() {
            return false;
        }
    }
}
