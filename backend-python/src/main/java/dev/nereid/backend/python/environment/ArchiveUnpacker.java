package dev.nereid.backend.python.environment;

import static java.nio.charset.StandardCharsets.ISO_8859_1;

import java.io.BufferedInputStream;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.FileTime;
import java.nio.file.attribute.PosixFilePermission;
import java.time.Instant;
import java.util.ArrayList;
import java.util.EnumSet;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.function.BooleanSupplier;
import java.util.zip.GZIPInputStream;

/**
 * Writes the entries of an archive into a directory. Confined to one thread.
 *
 * <p>Nothing is written outside of the directory: paths that are absolute or have {@code ..}, and entries below a
 * symbolic link of the archive, are refused. Links as such are normal. Devices and pipes are refused. Permissions,
 * times of files and both kinds of links are kept, owners are not; all that is unpacked may be read by its owner, and
 * directories be changed.
 */
final class ArchiveUnpacker {
    /** Bytes that stay free on the disk. */
    static final long RESERVE = 64L << 20;

    /** The number of skipped names that are kept. */
    private static final int MAX_SKIPPED = 5;

    private static final int BUFFER = 1 << 16;
    private static final int MARK = 8;
    private static final int GZIP_1 = 0x1f;
    private static final int GZIP_2 = 0x8b;

    /** The bytes behind the end of the archive that are read for the checksum of the compression. */
    private static final int MAX_TRAILER = 16 << 20;

    /** Bytes that are written until the free space is looked up again. */
    private static final long CHECK_INTERVAL = 16L << 20;

    /** The bytes that an entry takes on the disk beside its content. */
    private static final long ENTRY_SIZE = 4096;

    private static final Set<PosixFilePermission> OF_DIRECTORIES = EnumSet.of(
            PosixFilePermission.OWNER_READ, PosixFilePermission.OWNER_WRITE, PosixFilePermission.OWNER_EXECUTE);
    private static final Set<PosixFilePermission> OF_FILES = EnumSet.of(PosixFilePermission.OWNER_READ);

    private final Path root;
    private final FreeSpace space;
    private final BooleanSupplier isCancelled;
    private final byte[] buffer = new byte[BUFFER];
    private final List<String> skipped = new ArrayList<>();
    private int skippedCount;
    private long unchecked = CHECK_INTERVAL;

    /** The directory of the last entry: known to be no link. */
    private Path parent;

    /** Finds the space that is left. */
    @FunctionalInterface
    interface FreeSpace {
        /** Returns the bytes that may still be written. */
        long bytes() throws IOException;
    }

    /**
     * Creates an unpacker into an existing, empty directory, which nothing else changes.
     *
     * @param isCancelled ends the work early, with an {@link ArchiveException}
     */
    ArchiveUnpacker(Path root, FreeSpace space, BooleanSupplier isCancelled) {
        this.root = root;
        this.space = space;
        this.isCancelled = isCancelled;
        parent = root;
    }

    /**
     * Writes all entries.
     *
     * @param archive a tar archive, plain or compressed by gzip; owned by the caller
     * @throws ArchiveException if it is damaged or has an entry that is refused; files written so far stay
     * @throws IOException if it cannot be read, or an entry cannot be written
     */
    void unpack(InputStream archive) throws IOException {
        InputStream in = decompressed(archive);
        TarReader reader = new TarReader(in);
        for (Optional<TarEntry> entry = reader.next(); entry.isPresent(); entry = reader.next()) {
            if (isCancelled.getAsBoolean()) {
                throw new ArchiveException("the backend is closed");
            }
            claim(ENTRY_SIZE, entry.get().size());
            write(entry.get(), reader);
        }
        long left = MAX_TRAILER;
        for (int count = in.read(buffer); count >= 0 && left > 0; count = in.read(buffer)) {
            left -= count;
        }
    }

    /** Returns names that the file names of this process cannot express, a few of them. */
    List<String> skipped() {
        return List.copyOf(skipped);
    }

    /** Returns the number of these names. */
    int skippedCount() {
        return skippedCount;
    }

    private static InputStream decompressed(InputStream archive) throws IOException {
        BufferedInputStream in = new BufferedInputStream(archive, BUFFER);
        in.mark(MARK);
        byte[] start = in.readNBytes(MARK);
        in.reset();
        if (start.length > 2 && Byte.toUnsignedInt(start[0]) == GZIP_1 && Byte.toUnsignedInt(start[1]) == GZIP_2) {
            return new BufferedInputStream(new GZIPInputStream(in, BUFFER), BUFFER);
        }
        String format = format(start);
        if (!format.isEmpty()) {
            throw new ArchiveException("compressed by " + format + " (expected: a tar archive compressed by gzip)");
        }
        return in;
    }

    private static String format(byte[] start) {
        String text = new String(start, ISO_8859_1);
        if (text.startsWith("BZh")) {
            return "bzip2";
        }
        if (text.startsWith("\u00fd7zXZ")) {
            return "xz";
        }
        if (text.startsWith("PK\u0003\u0004")) {
            return "zip";
        }
        return text.startsWith("(\u00b5/\u00fd") ? "zstd" : "";
    }

    private void write(TarEntry entry, TarReader reader) throws IOException {
        List<String> names = names(entry.name());
        Path target;
        try {
            target = root;
            for (String name : names) {
                target = target.resolve(name);
            }
        } catch (InvalidPathException e) {
            skip(entry.name());
            return;
        }
        if (names.isEmpty()) {
            if (entry.kind() != TarEntry.Kind.DIRECTORY) {
                throw new ArchiveException("an entry without a name");
            }
            return; // the directory itself
        }
        enter(names.subList(0, names.size() - 1), entry.name());
        switch (entry.kind()) {
            case DIRECTORY -> {
                enter(names, entry.name());
                Files.setPosixFilePermissions(target, permissions(entry.mode(), OF_DIRECTORIES));
            }
            case FILE -> writeFile(entry, target, reader);
            case SYMBOLIC_LINK -> writeLink(entry, target);
            case HARD_LINK -> {
                replace(target, entry.name());
                writeHardLink(entry, target);
            }
            case OTHER ->
                throw new ArchiveException("'" + entry.name()
                        + "' is a device, a pipe or a sparse file (expected: files, directories and links)");
        }
    }

    private void writeFile(TarEntry entry, Path target, TarReader reader) throws IOException {
        replace(target, entry.name());
        try (OutputStream out = Files.newOutputStream(
                target, StandardOpenOption.CREATE_NEW, StandardOpenOption.WRITE, LinkOption.NOFOLLOW_LINKS)) {
            for (int count = reader.read(buffer); count > 0; count = reader.read(buffer)) {
                claim(count, 0);
                out.write(buffer, 0, count);
            }
        }
        Files.setLastModifiedTime(target, FileTime.from(Instant.ofEpochSecond(entry.modified())));
        Files.setPosixFilePermissions(target, permissions(entry.mode(), OF_FILES));
    }

    private void writeLink(TarEntry entry, Path target) throws IOException {
        Path linked;
        try {
            linked = Path.of(checked(entry.link(), entry.name()));
        } catch (InvalidPathException e) {
            skip(entry.name());
            return;
        }
        replace(target, entry.name());
        Files.createSymbolicLink(target, linked);
    }

    /** A hard link names an entry of the archive that has been written before. */
    private void writeHardLink(TarEntry entry, Path target) throws IOException {
        Path linked = root;
        try {
            List<String> names = names(entry.link());
            for (String name : names) {
                if (Files.isSymbolicLink(linked)) {
                    throw throughLink(entry.name());
                }
                linked = linked.resolve(name);
            }
        } catch (InvalidPathException e) {
            skip(entry.name());
            return;
        }
        if (Files.isSymbolicLink(linked)) {
            Files.createSymbolicLink(target, Files.readSymbolicLink(linked));
        } else if (Files.isRegularFile(linked, LinkOption.NOFOLLOW_LINKS)) {
            Files.createLink(target, linked);
        } else {
            throw new ArchiveException("'" + entry.name() + "' is a link to '" + entry.link()
                    + "', which the archive does not have before it");
        }
    }

    /** Removes the file or link that an earlier entry of the same path has made. */
    private static void replace(Path target, String name) throws IOException {
        if (Files.isDirectory(target, LinkOption.NOFOLLOW_LINKS)) {
            throw new ArchiveException("'" + name + "' is a directory and something else");
        }
        Files.deleteIfExists(target);
    }

    /** Makes the directories that are missing, none of which may be a link. */
    private void enter(List<String> names, String entry) throws IOException {
        Path directory = root;
        for (String name : names) {
            directory = directory.resolve(name);
        }
        if (directory.equals(parent)) {
            return;
        }
        Path at = root;
        for (String name : names) {
            at = at.resolve(name);
            if (Files.isSymbolicLink(at)) {
                throw throughLink(entry);
            }
            if (!Files.isDirectory(at, LinkOption.NOFOLLOW_LINKS)) {
                if (Files.exists(at, LinkOption.NOFOLLOW_LINKS)) {
                    throw new ArchiveException("'" + entry + "' is below a file");
                }
                Files.createDirectory(at);
            }
        }
        parent = directory;
    }

    private static ArchiveException throughLink(String entry) {
        return new ArchiveException("Cannot extract through symlink: '" + entry + "'");
    }

    private static List<String> names(String path) throws ArchiveException {
        if (checked(path, path).startsWith("/")) {
            throw new ArchiveException("Path is absolute: '" + path + "'");
        }
        List<String> names = new ArrayList<>();
        for (String name : path.split("/", -1)) {
            if (name.equals("..")) {
                throw new ArchiveException("Path contains '..': '" + path + "'");
            }
            if (!name.isEmpty() && !name.equals(".")) {
                names.add(name);
            }
        }
        return names;
    }

    private static String checked(String path, String entry) throws ArchiveException {
        if (path.isEmpty() || path.indexOf('\0') >= 0) {
            throw new ArchiveException(
                    "'" + entry.replace('\0', '?') + "': an empty path, or one with the character 0");
        }
        return path;
    }

    private void skip(String name) {
        skippedCount++;
        if (skipped.size() < MAX_SKIPPED) {
            skipped.add(name);
        }
    }

    /** Counts written bytes, and refuses more than the disk has. */
    private void claim(long written, long toCome) throws IOException {
        unchecked += written;
        if (unchecked < CHECK_INTERVAL && toCome < CHECK_INTERVAL) {
            return;
        }
        if (isCancelled.getAsBoolean()) {
            throw new ArchiveException("the backend is closed");
        }
        unchecked = 0;
        long free = space.bytes();
        if (free < RESERVE || toCome > free - RESERVE) {
            throw new ArchiveException("no space left for " + Math.max(written, toCome) + " bytes in " + root
                    + " (expected: " + RESERVE + " bytes more than the unpacked files; another directory is set by"
                    + " --plugin-cache-directory)");
        }
    }

    private static Set<PosixFilePermission> permissions(int mode, Set<PosixFilePermission> least) {
        Set<PosixFilePermission> permissions = EnumSet.copyOf(least);
        PosixFilePermission[] all = PosixFilePermission.values(); // from the owner's reading, the highest bit, on
        for (int i = 0; i < all.length; i++) {
            if ((mode & (1 << (all.length - 1 - i))) != 0) {
                permissions.add(all[i]);
            }
        }
        return permissions;
    }
}
