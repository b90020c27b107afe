package dev.nereid.backend.onnx.ort;

import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.net.JarURLConnection;
import java.net.URL;
import java.net.URLConnection;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.util.List;
import java.util.jar.JarFile;
import java.util.zip.CRC32;
import java.util.zip.CheckedInputStream;
import java.util.zip.ZipEntry;

/** Unpacks ONNX Runtime's native libraries to a directory, once per content. Stateless; safe from several processes. */
public final class NativeLibraryFile {
    private NativeLibraryFile() {}

    /**
     * Returns the unpacked library of {@code platform}, unpacking it first where {@code directory} does not have it.
     *
     * <p>The file is in a directory named by its checksum and size, so that two versions never collide. It appears by
     * an atomic move: another process sees a whole file or none. Beside it are the libraries of execution providers that
     * the artifact has, which the library looks for there.
     *
     * @throws IOException if the artifact has no library for the platform, or it cannot be written
     */
    public static Path unpack(NativePlatform platform, ClassLoader artifact, Path directory) throws IOException {
        URL resource = artifact.getResource(platform.resource());
        if (resource == null) {
            throw new IOException(platform.resource() + ": not on the class path (expected: ONNX Runtime's artifact)");
        }
        Fingerprint fingerprint = Fingerprint.of(resource);
        Path target = Files.createDirectories(directory.resolve("onnxruntime-" + fingerprint.name()));
        unpackCompanions(platform, artifact, target);
        Path library = target.resolve(platform.libraryFile());
        unpack(resource, fingerprint, library);
        return library;
    }

    private static void unpackCompanions(NativePlatform platform, ClassLoader artifact, Path target)
            throws IOException {
        List<String> names = platform.companions();
        if (artifact.getResource(platform.resource(names.getFirst())) == null) {
            return; // a build for the CPU, which on Windows has one of the others
        }
        for (String name : names) {
            URL companion = artifact.getResource(platform.resource(name));
            if (companion != null) {
                unpack(companion, Fingerprint.of(companion), target.resolve(name));
            }
        }
    }

    private static void unpack(URL resource, Fingerprint fingerprint, Path file) throws IOException {
        if (!Files.isRegularFile(file) || Files.size(file) != fingerprint.size()) {
            write(resource, file);
        }
    }

    private static void write(URL resource, Path library) throws IOException {
        Path target = library.toAbsolutePath().getParent();
        Path partial = Files.createTempFile(target, library.getFileName().toString(), ".partial");
        try {
            try (InputStream in = open(resource).getInputStream()) {
                Files.copy(in, partial, StandardCopyOption.REPLACE_EXISTING);
            }
            Files.move(partial, library, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            Files.deleteIfExists(partial);
        }
    }

    /** Opens a resource without the JDK's cache of jars, which would keep a jar open after its loader was closed. */
    private static URLConnection open(URL resource) throws IOException {
        URLConnection connection = resource.openConnection();
        connection.setUseCaches(false);
        return connection;
    }

    /** Checksum and size of a resource. A jar stores both, so that nothing is decompressed when the server starts. */
    private record Fingerprint(long checksum, long size) {
        static Fingerprint of(URL resource) throws IOException {
            URLConnection connection = open(resource);
            if (connection instanceof JarURLConnection jar) {
                try (JarFile file = jar.getJarFile()) {
                    ZipEntry entry = file.getEntry(jar.getEntryName());
                    return new Fingerprint(entry.getCrc(), entry.getSize());
                }
            }
            try (var in = new CheckedInputStream(connection.getInputStream(), new CRC32())) {
                long size = in.transferTo(OutputStream.nullOutputStream());
                return new Fingerprint(in.getChecksum().getValue(), size);
            }
        }

        String name() {
            return "%08x-%x".formatted(checksum, size);
        }
    }
}
