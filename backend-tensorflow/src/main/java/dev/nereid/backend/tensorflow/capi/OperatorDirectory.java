package dev.nereid.backend.tensorflow.capi;

import dev.nereid.backend.natives.LibraryDirectory;
import dev.nereid.backend.natives.LoadedLibraries;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.security.DigestInputStream;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.Collection;
import java.util.HexFormat;
import java.util.List;
import java.util.Optional;
import java.util.UUID;

/**
 * The directory from which a process maps a library of operations. Immutable; safe from several processes.
 *
 * <p>Operations stay registered until the process ends, while plugins come and go, each with its own classes. So the
 * directory is named by the content of the library and by its origin, and the mappings of the process tell which ones
 * are loaded.
 *
 * @param content the digest of the library
 * @param origin the digest of the path in the model's directory
 */
record OperatorDirectory(String content, String origin) {
    private static final String PARENT = "operators";
    private static final String SEPARATOR = "-";

    /** Describes a library by a copy of it, and by its file in the model's directory, the origin. */
    static OperatorDirectory of(Path library, Path origin) throws IOException {
        byte[] place = origin.toAbsolutePath().toString().getBytes(StandardCharsets.UTF_8);
        return new OperatorDirectory(digest(library), HexFormat.of().formatHex(sha256().digest(place)));
    }

    /** Returns the path of a loaded library with this content, from whatever origin. */
    Optional<Path> sameContent() throws IOException {
        return loaded().stream()
                .filter(path -> name(path).startsWith(content + SEPARATOR))
                .findFirst();
    }

    /** Returns the path of a loaded library of this origin, with whatever content. */
    Optional<Path> sameOrigin() throws IOException {
        return loaded().stream()
                .filter(path -> name(path).endsWith(SEPARATOR + origin))
                .findFirst();
    }

    private static List<Path> loaded() throws IOException {
        return LoadedLibraries.below(PARENT);
    }

    private static String name(Path library) {
        return String.valueOf(library.resolveSibling("").getFileName());
    }

    /**
     * Returns the library in a cache, and writes it there with the files beside it if it is missing or damaged.
     *
     * @param cache the directory of the plugin for such files
     * @param copies a directory with copies that are never changed
     * @param files the names of the copies to take over
     * @param library the name of the library among them
     * @throws IOException if it cannot be written
     */
    Path write(Path cache, Path copies, Collection<String> files, String library) throws IOException {
        Path parent = Files.createDirectories(cache.resolve(PARENT));
        Path target = parent.resolve(content + SEPARATOR + origin);
        Path written = target.resolve(library);
        if (Files.isRegularFile(written) && digest(written).equals(content)) {
            return written;
        }
        Path partial = Files.createDirectory(parent.resolve("." + UUID.randomUUID()));
        try {
            for (String file : files) {
                link(copies.resolve(file), partial.resolve(file));
            }
            LibraryDirectory.delete(target);
            Files.move(partial, target, StandardCopyOption.ATOMIC_MOVE);
        } finally {
            LibraryDirectory.delete(partial);
        }
        return written;
    }

    private static void link(Path file, Path link) throws IOException {
        try {
            Files.createLink(link, file);
        } catch (IOException | UnsupportedOperationException e) { // another file system, or one without links
            Files.copy(file, link);
        }
    }

    private static String digest(Path file) throws IOException {
        try (InputStream in = Files.newInputStream(file);
                DigestInputStream digest = new DigestInputStream(in, sha256())) {
            digest.transferTo(OutputStream.nullOutputStream());
            return HexFormat.of().formatHex(digest.getMessageDigest().digest());
        }
    }

    private static MessageDigest sha256() {
        try {
            return MessageDigest.getInstance("SHA-256");
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException("every platform has it", e);
        }
    }
}
