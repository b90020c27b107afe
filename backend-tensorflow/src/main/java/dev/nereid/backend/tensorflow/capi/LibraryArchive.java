package dev.nereid.backend.tensorflow.capi;

import java.io.IOException;
import java.io.InputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;

/**
 * The libraries of one platform in an artifact of TensorFlow Java. Immutable; any thread may use it.
 */
final class LibraryArchive {
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
            throw new IOException(artifact.getFileName() + ": " + LibraryDirectory.reason(e) + " (expected: a jar)", e);
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

    /** Returns the file name of the library with the C API. */
    String libraryFile() {
        return platform.libraryFile();
    }

    /** Returns whether a directory has all of the libraries, by their sizes. */
    boolean isIn(Path directory) throws IOException {
        for (Entry entry : entries) {
            try {
                Path library = directory.resolve(entry.name());
                if (!Files.isRegularFile(library) || Files.size(library) != entry.size()) {
                    return false;
                }
            } catch (NoSuchFileException e) { // it was just moved away
                return false;
            }
        }
        return true;
    }

    /**
     * Writes the libraries into a directory.
     *
     * @throws IOException if they cannot be written, or the artifact is damaged
     */
    void writeTo(Path directory, Disk disk) throws IOException {
        try (ZipFile zip = new ZipFile(file.toFile())) {
            for (Entry entry : entries) {
                try (CheckedInputStream in =
                        new CheckedInputStream(zip.getInputStream(new ZipEntry(entry.path())), new CRC32())) {
                    disk.write(in, directory.resolve(entry.name()));
                    if (in.getChecksum().getValue() != entry.checksum()) {
                        throw new ZipException(entry.name() + ": damaged in " + file.getFileName()
                                + " (expected: checksum %08x)".formatted(entry.checksum()));
                    }
                }
            }
        }
    }

    /** Returns the failure for an artifact that cannot be read. */
    IOException damaged(IOException cause) {
        return damaged(file, cause);
    }

    private static IOException damaged(Path artifact, IOException cause) {
        return new IOException(artifact.getFileName() + ": damaged (expected: a jar)", cause);
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
}
