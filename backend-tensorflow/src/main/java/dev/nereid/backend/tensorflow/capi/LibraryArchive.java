package dev.nereid.backend.tensorflow.capi;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.AccessDeniedException;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Optional;
import java.util.UUID;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;

/**
 * The libraries of one platform in an artifact of TensorFlow Java. Immutable; safe from several processes.
 *
 * <p>They are unpacked together into a directory that is named by their checksums and sizes, so that two versions never
 * collide. The directory appears by an atomic move: another process sees all of it or none.
 */
final class LibraryArchive {
    private static final String EXPECTED_SPACE =
            " (expected: 700 MB in a directory that can be written; set one by --plugin-cache-directory)";

    /** Others may repair a damaged directory at the same time, and get in the way of a move. */
    private static final int MAX_REPAIRS = 5;

    private final Path file;
    private final NativePlatform platform;
    private final List<Entry> entries;

    /** A library in the artifact, as the artifact describes it: nothing is decompressed for that. */
    private record Entry(String path, String name, long size, long checksum) {}

    private LibraryArchive(Path file, NativePlatform platform, List<Entry> entries) {
        this.file = file;
        this.platform = platform;
        this.entries = entries;
    }

    /**
     * Opens the first artifact in a list that has the library of a platform.
     *
     * @throws IOException if none has it
     */
    static LibraryArchive in(List<Path> artifacts, NativePlatform platform) throws IOException {
        for (Path artifact : artifacts) {
            for (String prefix : platform.prefixes()) {
                List<Entry> entries = entries(artifact, prefix);
                if (entries.stream().anyMatch(entry -> entry.name().equals(platform.libraryFile()))) {
                    return new LibraryArchive(artifact, platform, entries);
                }
            }
        }
        throw new IOException(platform.libraryFile() + ": missing (expected: tensorflow-core-native-…-" + platform
                + ".jar in the directory natives of the plugin)");
    }

    private static List<Entry> entries(Path artifact, String prefix) throws IOException {
        try (ZipFile zip = new ZipFile(artifact.toFile())) {
            List<Entry> entries = new ArrayList<>();
            zip.stream().filter(entry -> isLibrary(entry, prefix)).forEach(entry -> {
                String name = entry.getName().substring(prefix.length());
                entries.add(new Entry(entry.getName(), name, entry.getSize(), entry.getCrc()));
            });
            entries.sort(Comparator.comparing(Entry::name));
            return List.copyOf(entries);
        } catch (ZipException e) {
            throw damaged(artifact, e);
        } catch (FileSystemException e) {
            throw new IOException(artifact.getFileName() + ": " + reason(e) + " (expected: a jar)", e);
        }
    }

    /** Whether an entry is a library, but not one of the Java API, which is not used. */
    private static boolean isLibrary(ZipEntry entry, String prefix) {
        String name = entry.getName();
        if (!name.startsWith(prefix) || name.indexOf('/', prefix.length()) >= 0) {
            return false;
        }
        String simple = name.substring(prefix.length());
        return !simple.startsWith("libjni") && (simple.contains(".so") || simple.endsWith(".dylib"));
    }

    /** Returns the libraries' directory name, which their content determines. */
    String directoryName() {
        CRC32 all = new CRC32();
        long size = 0;
        for (Entry entry : entries) {
            all.update((entry.name() + ' ' + entry.size() + ' ' + entry.checksum() + '\n')
                    .getBytes(StandardCharsets.UTF_8));
            size += entry.size();
        }
        return "tensorflow-%08x-%x".formatted(all.getValue(), size);
    }

    /**
     * Returns the unpacked library with the C API, unpacking it first if {@code cache} does not have it.
     *
     * @throws IOException if it cannot be written, or the artifact is damaged
     */
    Path unpack(Path cache) throws IOException {
        Path target = cache.resolve(directoryName());
        try {
            if (!isUnpacked(target)) {
                Files.createDirectories(cache);
                Path partial = createBeside(target, ".tensorflow-");
                try {
                    writeAll(partial);
                    replace(target, partial);
                } finally {
                    delete(partial);
                }
            }
        } catch (ZipException | EOFException e) {
            throw damaged(file, e);
        } catch (IOException e) {
            throw new IOException("its library cannot be unpacked: " + reason(e) + EXPECTED_SPACE, e);
        }
        return target.resolve(platform.libraryFile());
    }

    private static IOException damaged(Path artifact, IOException cause) {
        return new IOException(artifact.getFileName() + ": damaged (expected: a jar)", cause);
    }

    /** What the file system says, without the path: it is for clients too. */
    private static String reason(IOException e) {
        return switch (e) {
            case AccessDeniedException _ -> "permission denied";
            case FileAlreadyExistsException _ -> "a file is in place of the directory";
            case FileSystemException failure ->
                failure.getReason() == null ? failure.getClass().getSimpleName() : failure.getReason();
            default -> String.valueOf(e.getMessage());
        };
    }

    /** Creates a directory of a name of its own, with the permissions that any directory of this process gets. */
    private static Path createBeside(Path target, String prefix) throws IOException {
        return Files.createDirectory(target.resolveSibling(prefix + UUID.randomUUID()));
    }

    private boolean isUnpacked(Path target) throws IOException {
        for (Entry entry : entries) {
            try {
                Path library = target.resolve(entry.name());
                if (!Files.isRegularFile(library) || Files.size(library) != entry.size()) {
                    return false;
                }
            } catch (NoSuchFileException e) { // it was just moved away
                return false;
            }
        }
        return true;
    }

    private void writeAll(Path directory) throws IOException {
        try (ZipFile zip = new ZipFile(file.toFile())) {
            for (Entry entry : entries) {
                try (CheckedInputStream in =
                        new CheckedInputStream(zip.getInputStream(new ZipEntry(entry.path())), new CRC32())) {
                    Files.copy(in, directory.resolve(entry.name()));
                    if (in.getChecksum().getValue() != entry.checksum()) {
                        throw new ZipException(entry.name() + ": damaged in " + file.getFileName()
                                + " (expected: checksum %08x)".formatted(entry.checksum()));
                    }
                }
            }
        }
    }

    /** Moves the complete directory to its name, unless another thread or process has done so meanwhile. */
    private void replace(Path target, Path complete) throws IOException {
        Optional<IOException> failure = move(complete, target);
        for (int i = 0; failure.isPresent() && i < MAX_REPAIRS; i++) {
            moveAway(target);
            failure = move(complete, target);
        }
        if (failure.isPresent()) {
            throw new IOException(
                    "directory " + target.getFileName() + " cannot be replaced: " + reason(failure.get()),
                    failure.get());
        }
    }

    /** Moves a directory; returns why it failed, if the target is not as it should be afterwards. */
    private Optional<IOException> move(Path directory, Path target) throws IOException {
        try {
            Files.move(directory, target, StandardCopyOption.ATOMIC_MOVE);
            return Optional.empty();
        } catch (IOException e) {
            return isUnpacked(target) ? Optional.empty() : Optional.of(e);
        }
    }

    /** Moves a directory away that was cut short or edited. One that was repaired meanwhile may be mapped: it returns. */
    private void moveAway(Path target) throws IOException {
        Path away = createBeside(target, ".tensorflow-old-");
        try {
            Path old = away.resolve(target.getFileName());
            Files.move(target, old, StandardCopyOption.ATOMIC_MOVE);
            if (isUnpacked(old)) {
                move(old, target);
            }
        } catch (NoSuchFileException e) {
            // another one repairs it too
        } finally {
            delete(away);
        }
    }

    /** Returns whether a library elsewhere has the content of the one in the artifact. Reads all of it. */
    boolean isSameContent(Path library) throws IOException {
        for (Entry entry : entries) {
            Path other = library.resolveSibling(entry.name());
            if (!Files.isRegularFile(other)
                    || Files.size(other) != entry.size()
                    || checksum(other) != entry.checksum()) {
                return false;
            }
        }
        return true;
    }

    private static long checksum(Path library) throws IOException {
        CRC32 checksum = new CRC32();
        byte[] buffer = new byte[1 << 20];
        try (InputStream in = Files.newInputStream(library)) {
            for (int length = in.read(buffer); length >= 0; length = in.read(buffer)) {
                checksum.update(buffer, 0, length);
            }
        }
        return checksum.getValue();
    }

    private static void delete(Path directory) throws IOException {
        if (!Files.exists(directory)) {
            return;
        }
        List<Path> entries;
        try (Stream<Path> walk = Files.walk(directory)) {
            entries = walk.sorted(Comparator.reverseOrder()).toList();
        }
        for (Path entry : entries) {
            Files.deleteIfExists(entry);
        }
    }
}
