package dev.nereid.backend.natives;

import java.io.IOException;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.Optional;
import java.util.UUID;

/**
 * Unpacks the libraries of a framework into a directory of a cache. Immutable; safe from several processes.
 *
 * <p>It is named by the libraries' checksums and sizes, so that two versions never collide. It is written to the disk
 * beside its place and appears there by an atomic move: another process, also one after a crash of the machine, sees all
 * of it or none.
 */
final class Unpacking {
    /** Others may repair a damaged directory at the same time, and get in the way of a move. */
    private static final int MAX_REPAIRS = 5;

    private final NativeProduct product;
    private final LibraryArchive archive;
    private final Path target;
    private final Disk disk;

    Unpacking(NativeProduct product, LibraryArchive archive, Path cache, Disk disk) {
        this.product = product;
        this.archive = archive;
        this.disk = disk;
        target = cache.resolve(archive.directoryName(product));
    }

    /**
     * Returns the directory with the libraries, unpacking them first if the cache does not have them.
     *
     * @param others called once they have been unpacked, since there may be directories of other versions
     * @throws IOException if they cannot be written, or a jar is damaged
     */
    Path directory(Runnable others) throws IOException {
        try {
            if (!archive.isIn(target)) {
                Files.createDirectories(target.resolveSibling(""));
                Path partial = createBeside(product.partialPrefix());
                try {
                    archive.writeTo(partial, disk);
                    disk.sync(partial);
                    replace(partial);
                    disk.sync(target.resolveSibling(""));
                } finally {
                    LibraryDirectory.delete(partial);
                }
                others.run();
            }
        } catch (DamagedJarException e) {
            throw e;
        } catch (IOException e) {
            throw new IOException(
                    "its library cannot be unpacked: " + reason(e) + " (expected: " + product.space()
                            + " free in a directory that can be written; set one by --plugin-cache-directory)",
                    e);
        }
        return target;
    }

    /** Returns the reason of the file system without the path: the text is for clients too. */
    static String reason(IOException e) {
        return switch (e) {
            case AccessDeniedException _ -> "permission denied";
            case FileAlreadyExistsException _ -> "a file is in place of the directory";
            case FileSystemException failure ->
                failure.getReason() == null ? failure.getClass().getSimpleName() : failure.getReason();
            default -> String.valueOf(e.getMessage());
        };
    }

    /** Creates a directory of a unique name, with the default permissions of this process. */
    private Path createBeside(String prefix) throws IOException {
        return Files.createDirectory(target.resolveSibling(prefix + UUID.randomUUID()));
    }

    /** Moves the complete directory to its name, unless another thread or process has done so meanwhile. */
    private void replace(Path complete) throws IOException {
        Optional<IOException> failure = move(complete);
        for (int i = 0; failure.isPresent() && i < MAX_REPAIRS; i++) {
            moveAway();
            failure = move(complete);
        }
        if (failure.isPresent()) {
            throw new IOException(
                    "directory " + target.getFileName() + " cannot be replaced: " + reason(failure.get()),
                    failure.get());
        }
    }

    /** Moves a directory to the target; returns the failure unless the target then has the content of the archive. */
    private Optional<IOException> move(Path directory) throws IOException {
        try {
            disk.move(directory, target);
            return Optional.empty();
        } catch (IOException e) {
            return archive.isIn(target) ? Optional.empty() : Optional.of(e);
        }
    }

    /** Moves a directory away that was cut short or edited. One that was repaired meanwhile may be mapped: it returns. */
    private void moveAway() throws IOException {
        Path away = createBeside(product.partialPrefix() + "old-");
        try {
            Path old = away.resolve(target.getFileName());
            disk.move(target, old);
            if (archive.isIn(old)) {
                move(old);
            }
        } catch (NoSuchFileException e) {
            // another one repairs it too
        } finally {
            LibraryDirectory.delete(away);
        }
    }
}
