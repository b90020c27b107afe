package dev.nereid.backend.python.environment;

import static java.nio.file.StandardCopyOption.ATOMIC_MOVE;

import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.io.InputStream;
import java.io.UncheckedIOException;
import java.net.JarURLConnection;
import java.net.URI;
import java.net.URISyntaxException;
import java.net.URL;
import java.net.URLConnection;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.security.MessageDigest;
import java.util.Arrays;
import java.util.Collections;
import java.util.Map;
import java.util.SortedMap;
import java.util.TreeMap;
import java.util.jar.JarEntry;
import java.util.jar.JarFile;
import java.util.stream.Stream;

/**
 * Unpacks the Python side of the backend from the plugin's jar. Static functions only; they block.
 *
 * <p>The files lie in a directory of the cache that is named by their content. Several servers may unpack at once: each
 * file is moved into place as a whole. Files that are there are compared, and replaced if they are damaged or
 * incomplete. Nothing is written where all are there, so that the cache may be read only by then.
 */
public final class RunnerFiles {
    private static final String ROOT = "python/";
    private static final String MAIN = "nereid_python/__main__.py";

    /** The most that a file of the runner may have, in bytes: the files are read as a whole. */
    private static final int MAX_SIZE = 16 << 20;

    private RunnerFiles() {}

    /**
     * Unpacks the files, unless they are there.
     *
     * @param context the backend; the files are a part of its cache directory
     * @return the absolute path of the directory that has {@code nereid_python/__main__.py}, {@code
     *     triton_python_backend_utils.py} and the others; read only
     * @throws BackendException {@link ErrorCode#UNAVAILABLE} if the cache directory cannot be written, {@link
     *     ErrorCode#INTERNAL} if the jar has no such files
     */
    public static Path unpack(BackendContext context) {
        try {
            SortedMap<String, byte[]> files = packed();
            Path directory = context.cacheDirectory().toAbsolutePath().resolve("runner-" + digest(files));
            for (Map.Entry<String, byte[]> file : files.entrySet()) {
                Path target = directory.resolve(file.getKey());
                if (!isSame(target, file.getValue())) {
                    write(target, file.getValue());
                }
            }
            return directory;
        } catch (IOException | UncheckedIOException e) {
            throw new BackendException(
                    ErrorCode.UNAVAILABLE,
                    "files of the Python backend: not unpacked: " + e.getMessage()
                            + " (expected: a cache directory that can be written and has space; another one is set by"
                            + " --plugin-cache-directory)",
                    e);
        }
    }

    private static String digest(SortedMap<String, byte[]> files) {
        MessageDigest digest = Digests.start();
        files.forEach((name, content) -> {
            digest.update(name.getBytes(StandardCharsets.UTF_8));
            digest.update(ByteBuffer.allocate(1 + Long.BYTES)
                    .putLong(1, content.length)
                    .array());
            digest.update(content);
        });
        return Digests.end(digest);
    }

    private static boolean isSame(Path file, byte[] content) {
        try {
            return Files.isRegularFile(file)
                    && Files.size(file) == content.length
                    && Arrays.equals(Files.readAllBytes(file), content);
        } catch (IOException e) {
            return false;
        }
    }

    private static void write(Path target, byte[] content) throws IOException {
        Path directory = Files.createDirectories(target.resolveSibling(""));
        Path written = Files.createTempFile(directory, ".", ".part");
        try {
            Files.write(written, content);
            // Other servers may run as other users: all may read, nobody writes.
            Files.setPosixFilePermissions(written, PosixFilePermissions.fromString("r--r--r--"));
            if (Files.isDirectory(target)) {
                FileTrees.remove(target);
            }
            Files.move(written, target, ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(written);
        }
    }

    /** Reads all files below {@code python/} of the jar, or of the directory with classes. */
    private static SortedMap<String, byte[]> packed() throws IOException {
        URL main = RunnerFiles.class.getClassLoader().getResource(ROOT + MAIN);
        if (main == null) {
            throw missing();
        }
        SortedMap<String, byte[]> files = main.getProtocol().equals("file") ? ofDirectory(main) : ofJar(main);
        if (!files.containsKey(MAIN)) {
            throw missing();
        }
        return Collections.unmodifiableSortedMap(files);
    }

    private static SortedMap<String, byte[]> ofJar(URL main) throws IOException {
        URLConnection connection = main.openConnection();
        if (!(connection instanceof JarURLConnection inJar)) {
            throw missing();
        }
        inJar.setUseCaches(false); // the jar may be replaced later
        SortedMap<String, byte[]> files = new TreeMap<>();
        try (JarFile jar = inJar.getJarFile()) {
            for (JarEntry entry : Collections.list(jar.entries())) {
                if (entry.getName().startsWith(ROOT) && !entry.isDirectory()) {
                    try (InputStream in = jar.getInputStream(entry)) {
                        add(files, entry.getName().substring(ROOT.length()), in.readNBytes(MAX_SIZE));
                    }
                }
            }
        }
        return files;
    }

    private static SortedMap<String, byte[]> ofDirectory(URL main) throws IOException {
        Path directory;
        try {
            URI file = main.toURI();
            directory = Path.of(file).resolveSibling("..").normalize();
        } catch (URISyntaxException e) {
            throw new IOException("path of the runner: " + main, e);
        }
        SortedMap<String, byte[]> files = new TreeMap<>();
        try (Stream<Path> all = Files.walk(directory)) {
            for (Path file : all.filter(Files::isRegularFile).toList()) {
                add(files, directory.relativize(file).toString(), Files.readAllBytes(file));
            }
        }
        return files;
    }

    /** Adds a source; byte code beside it, as an interpreter leaves it, is no part of the runner. */
    private static void add(SortedMap<String, byte[]> files, String name, byte[] content) throws IOException {
        if (name.contains("..") || name.startsWith("/")) {
            throw new IOException("file of the runner: " + name + " (expected: a path within python/)");
        }
        if (!name.endsWith(".pyc")) {
            files.put(name, content);
        }
    }

    private static BackendException missing() {
        return new BackendException(
                ErrorCode.INTERNAL, "files of the Python backend: " + ROOT + MAIN + " is not in the plugin's jar");
    }
}
