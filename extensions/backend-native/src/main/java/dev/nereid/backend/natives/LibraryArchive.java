package dev.nereid.backend.natives;

import java.io.EOFException;
import java.io.IOException;
import java.io.InputStream;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileSystemException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.stream.Stream;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;
import java.util.zip.ZipEntry;
import java.util.zip.ZipException;
import java.util.zip.ZipFile;
import org.jspecify.annotations.Nullable;

/**
 * The packed libraries of a framework for one platform, in one jar or in several. Immutable; any thread may use it.
 *
 * <p>It has the names, sizes and checksums of the libraries, which the jars store: nothing is decompressed for them.
 */
public final class LibraryArchive {
    private static final String NATIVES = "natives";

    /** By the names of the libraries. */
    private final List<Entry> entries;

    /** A library, as its jar describes it. */
    private record Entry(Path jar, String path, String name, long size, long checksum) {}

    private LibraryArchive(List<Entry> entries) {
        this.entries = entries;
    }

    /**
     * Finds the libraries of a framework. Each source is looked for in the jars of the plugin's directory {@code natives}, by
     * name, and then in the jars of a class loader; the first jar that has its libraries is taken. Blocks while it reads the
     * lists of the jars.
     *
     * @param plugin the directory of the plugin
     * @param classes finds jars among the plugin's own jars
     * @param sources where the libraries are; they have no library in common
     * @throws IOException if a library is missing or in two sources, or a jar is damaged or cannot be read
     */
    public static LibraryArchive find(Path plugin, ClassLoader classes, List<LibrarySource> sources)
            throws IOException {
        List<Path> natives = natives(plugin);
        Map<String, Entry> entries = new LinkedHashMap<>();
        for (LibrarySource source : sources) {
            List<Path> jars = new ArrayList<>(natives);
            jars.addAll(jarsOf(source, classes));
            for (Entry entry : entries(source, jars)) {
                Entry other = entries.putIfAbsent(entry.name(), entry);
                if (other != null) {
                    throw new IOException(
                            entry.name() + ": twice, in " + other.jar().getFileName() + " and in "
                                    + entry.jar().getFileName() + " (expected: once)");
                }
            }
        }
        return new LibraryArchive(entries.values().stream()
                .sorted(Comparator.comparing(Entry::name))
                .toList());
    }

    private static List<Path> natives(Path plugin) throws IOException {
        Path natives = plugin.resolve(NATIVES);
        if (!Files.isDirectory(natives)) {
            return List.of();
        }
        try (Stream<Path> files = Files.list(natives)) {
            return files.filter(file -> file.getFileName().toString().endsWith(".jar"))
                    .sorted()
                    .toList();
        }
    }

    private static List<Path> jarsOf(LibrarySource source, ClassLoader classes) throws IOException {
        List<Path> jars = new ArrayList<>();
        for (String directory : source.directories()) {
            URL resource = classes.getResource(directory + source.libraries().getFirst());
            if (resource != null && resource.getProtocol().equals("jar")) {
                String path = resource.getPath();
                jars.add(file(path.substring(0, path.indexOf("!/"))));
            }
        }
        return jars;
    }

    private static Path file(String url) throws IOException {
        try {
            return Path.of(new URI(url));
        } catch (URISyntaxException e) {
            throw new IOException(url + ": not a file", e);
        }
    }

    /** Returns the libraries of a source in the first jar that has all that it must have. */
    private static List<Entry> entries(LibrarySource source, List<Path> jars) throws IOException {
        String missing = source.libraries().getFirst();
        for (Path jar : jars) {
            for (String directory : source.directories()) {
                List<Entry> entries = entries(source, jar, directory);
                Optional<String> lacking = lacking(source, entries);
                if (lacking.isEmpty()) {
                    return entries;
                }
                if (!entries.isEmpty()) {
                    missing = lacking.get();
                }
            }
        }
        throw new IOException(missing + ": missing (expected: " + source.artifact() + " in the directory " + NATIVES
                + " of the plugin)");
    }

    private static Optional<String> lacking(LibrarySource source, List<Entry> entries) {
        List<String> names = entries.stream().map(Entry::name).toList();
        return source.libraries().stream().filter(name -> !names.contains(name)).findFirst();
    }

    private static List<Entry> entries(LibrarySource source, Path jar, String directory) throws IOException {
        try (ZipFile zip = new ZipFile(jar.toFile())) {
            return zip.stream()
                    .filter(entry -> entry.getName().startsWith(directory))
                    .map(entry -> new Entry(
                            jar,
                            entry.getName(),
                            entry.getName().substring(directory.length()),
                            entry.getSize(),
                            entry.getCrc()))
                    .filter(entry -> entry.name().indexOf('/') < 0 && source.selects(entry.name()))
                    .toList();
        } catch (ZipException e) {
            throw new DamagedJarException(jar, e);
        } catch (FileSystemException e) {
            throw new IOException(jar.getFileName() + ": " + Unpacking.reason(e) + " (expected: a jar)", e);
        }
    }

    /** Returns the name of the libraries' directory in a cache, which their content determines. */
    String directoryName(NativeProduct product) {
        CRC32 all = new CRC32();
        long size = 0;
        for (Entry entry : entries) {
            all.update((entry.name() + ' ' + entry.size() + ' ' + entry.checksum() + '\n')
                    .getBytes(StandardCharsets.UTF_8));
            size += entry.size();
        }
        return "%s-%08x-%x".formatted(product.prefix(), all.getValue(), size);
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

    /** Writes the libraries into a directory; throws a {@link DamagedJarException} if a jar is damaged. */
    void writeTo(Path directory, Disk disk) throws IOException {
        Map<Path, List<Entry>> jars = new LinkedHashMap<>();
        for (Entry entry : entries) {
            jars.computeIfAbsent(entry.jar(), _ -> new ArrayList<>()).add(entry);
        }
        for (Map.Entry<Path, List<Entry>> jar : jars.entrySet()) {
            try (ZipFile zip = new ZipFile(jar.getKey().toFile())) {
                for (Entry entry : jar.getValue()) {
                    write(zip, entry, directory.resolve(entry.name()), disk);
                }
            } catch (ZipException | EOFException e) {
                throw new DamagedJarException(jar.getKey(), e);
            }
        }
    }

    private static void write(ZipFile zip, Entry entry, Path file, Disk disk) throws IOException {
        @Nullable InputStream content = zip.getInputStream(new ZipEntry(entry.path()));
        if (content == null) { // another jar is in its place by now
            throw new ZipException(entry.name() + ": missing");
        }
        try (CheckedInputStream in = new CheckedInputStream(content, new CRC32())) {
            disk.write(in, file);
            if (in.getChecksum().getValue() != entry.checksum()) {
                throw new ZipException(
                        entry.name() + ": damaged (expected: checksum %08x)".formatted(entry.checksum()));
            }
        }
    }

    /** Returns whether a directory elsewhere has the libraries with the same content. Reads all of them. */
    boolean isSameContent(Path directory) throws IOException {
        for (Entry entry : entries) {
            Path other = directory.resolve(entry.name());
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
