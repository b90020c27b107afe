package dev.nereid.repository.files;

import com.google.errorprone.annotations.concurrent.GuardedBy;
import dev.nereid.api.InferenceException;
import dev.nereid.api.Quoted;
import dev.nereid.api.file.ContainedPath;
import dev.nereid.repository.ModelDirectory;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.channels.FileChannel;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.FileTime;
import java.util.Collection;
import java.util.HashMap;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.ReentrantLock;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The private copies of files of one model version. Owned by the load, and then by the version; safe for use by any
 * thread; blocks.
 *
 * <p>A copy has the content that its file had at one moment: a file that changes while it is copied is refused.
 */
public final class VersionFiles implements AutoCloseable {
    private static final Logger LOG = LoggerFactory.getLogger(VersionFiles.class);
    private static final String WHAT = "model file";
    private static final String CURE = "the directory for files of plugins; set another one by --plugin-cache-directory"
            + " or NEREID_PLUGIN_CACHE_DIRECTORY";

    private final ModelDirectory model;
    private final PrivateDirectory directory;
    private final AtomicLong number;
    private final boolean isStable;
    private final ReentrantLock lock = new ReentrantLock();

    /** The directories with copies, by the copied files. */
    @GuardedBy("lock")
    private final Map<Request, Path> copies = new HashMap<>();

    @GuardedBy("lock")
    private boolean closed;

    /** Identifies copies by the paths of files below a directory. */
    private record Request(Path directory, TreeSet<String> files) {}

    VersionFiles(ModelDirectory model, PrivateDirectory directory, AtomicLong number, boolean isStable) {
        this.model = model;
        this.directory = directory;
        this.number = number;
        this.isStable = isStable;
    }

    /**
     * Copies files of the model, unless this was done before.
     *
     * @param source the directory of the model, or one below it
     * @param files the files as paths below {@code source}
     * @return the directory with the copies, until {@link #close}; {@code source} if the files need no copies
     * @throws BackendException as {@link dev.nereid.spi.ModelContext#privateFiles}
     */
    public Path copy(Path source, Collection<String> files) {
        Path from = source.toAbsolutePath().normalize();
        if (!from.startsWith(model.path().toAbsolutePath().normalize())) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "directory of model files: '" + source.getFileName()
                            + "' (expected: the directory of the model, or one below it)");
        }
        SortedMap<String, Path> found = find(source, files);
        if (isStable) {
            return source;
        }
        Request request = new Request(from, new TreeSet<>(files));
        lock.lock();
        try {
            if (closed) {
                throw new BackendException(
                        ErrorCode.UNAVAILABLE, "private files of model '" + model.name() + "': the model is closed");
            }
            Path present = copies.get(request);
            if (present == null) {
                present = copy(found);
                copies.put(request, present);
            }
            return present;
        } finally {
            lock.unlock();
        }
    }

    private SortedMap<String, Path> find(Path source, Collection<String> files) {
        SortedMap<String, Path> found = new TreeMap<>();
        try {
            for (String file : files) {
                Path path = ContainedPath.resolve(WHAT, source, file);
                Path real = ContainedPath.existing(WHAT, model.root(), path, file);
                if (!Files.isRegularFile(real)) { // to open a pipe would wait for its writer
                    throw new BackendException(
                            ErrorCode.INVALID_ARGUMENT,
                            WHAT + ": '" + Quoted.text(file) + "' (expected: a regular file)");
                }
                found.put(file, real);
            }
            return found;
        } catch (InferenceException e) {
            throw new BackendException(e.code(), e.publicMessage(), e);
        }
    }

    private Path copy(SortedMap<String, Path> files) {
        long started = System.nanoTime();
        Path target = null;
        boolean copied = false;
        long bytes = 0;
        try {
            for (Path file : files.values()) {
                bytes += Files.size(file);
            }
            Path root = directory.create();
            long usable = Files.getFileStore(root).getUsableSpace();
            if (usable > 0 && usable < bytes) { // some file systems do not know it, and say 0
                throw noSpace(files.size(), bytes);
            }
            target = Files.createDirectory(root.resolve(Long.toString(number.incrementAndGet())));
            for (Map.Entry<String, Path> file : files.entrySet()) {
                Path copy = target.resolve(file.getKey());
                Files.createDirectories(copy.resolveSibling(""));
                copy(file.getKey(), file.getValue(), copy);
            }
            copied = true;
            LOG.atDebug()
                    .addKeyValue("model", model.name())
                    .addKeyValue("files", files.size())
                    .addKeyValue("bytes", bytes)
                    .addKeyValue("elapsedMillis", (System.nanoTime() - started) / 1_000_000)
                    .log(
                            "private copies of model files written (model '{}', {} bytes, after {} ms)",
                            model.name(),
                            bytes,
                            (System.nanoTime() - started) / 1_000_000);
            return target;
        } catch (IOException e) {
            LOG.atWarn()
                    .addKeyValue("model", model.name())
                    .setCause(e)
                    .log("private copies of model files failed (model '{}')", model.name());
            if (isFull(e)) {
                throw noSpace(files.size(), bytes);
            }
            throw new BackendException(
                    ErrorCode.UNAVAILABLE,
                    "private copies of files of model '" + model.name() + "' cannot be written: " + reason(e)
                            + " (expected: files that can be read, and that " + CURE + ", can be written)",
                    e);
        } finally {
            if (!copied && target != null) {
                PrivateDirectory.remove(target);
            }
        }
    }

    /** Copies a file as far as it reached at first; the file system shares the blocks of both where it can. */
    private void copy(String name, Path source, Path target) throws IOException {
        try (FileChannel in = FileChannel.open(source, StandardOpenOption.READ);
                FileChannel out = FileChannel.open(target, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE)) {
            FileState before = FileState.of(source);
            long position = 0;
            long transferred = before.size() == 0 ? 0 : 1;
            while (position < before.size() && transferred > 0) {
                transferred = in.transferTo(position, before.size() - position, out);
                position += transferred;
            }
            if (position != before.size() || !before.equals(FileState.of(source))) {
                throw changed(name);
            }
        } catch (NoSuchFileException e) { // it was there before
            throw changed(name);
        }
    }

    private BackendException changed(String file) {
        return new BackendException(
                ErrorCode.UNAVAILABLE,
                "model file '" + Quoted.text(file) + "' of model '" + model.name()
                        + "' changed while it was copied (expected: files that stay as they are during a load): load the"
                        + " model again");
    }

    private BackendException noSpace(int files, long bytes) {
        return new BackendException(
                ErrorCode.UNAVAILABLE,
                "private copies of " + files + " files of model '" + model.name() + "': no space for " + bytes
                        + " bytes (expected: as much free space in " + CURE + ")");
    }

    private static boolean isFull(IOException failure) {
        String text = String.valueOf(failure.getMessage());
        return text.contains("No space left") || text.contains("Disk quota exceeded");
    }

    /** Returns why files cannot be written, without their paths on this machine. */
    private static String reason(IOException failure) {
        String text = failure instanceof FileSystemException file ? file.getReason() : failure.getMessage();
        return text == null ? failure.getClass().getSimpleName() : text;
    }

    /** Removes the copies. Mapped files stay mapped. Later calls do nothing. */
    @Override
    public void close() {
        lock.lock();
        try {
            closed = true;
            copies.values().forEach(PrivateDirectory::remove);
            copies.clear();
        } finally {
            lock.unlock();
        }
    }

    /**
     * Distinguishes the contents of a file by size and time.
     *
     * @param modified when it was last written
     */
    private record FileState(long size, FileTime modified) {
        static FileState of(Path file) throws IOException {
            BasicFileAttributes attributes = Files.readAttributes(file, BasicFileAttributes.class);
            return new FileState(attributes.size(), attributes.lastModifiedTime());
        }
    }
}
