package dev.nereid.repository.storage;

import java.io.IOException;
import java.io.InputStream;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.security.MessageDigest;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Map;
import java.util.Set;

/** Compares a copy that another process left with its manifest. Static functions only. */
final class CopyVerification {
    private static final int BUFFER_BYTES = 1 << 18;

    private CopyVerification() {}

    /** Returns whether a copy holds exactly the files and directories that its manifest lists. Reads all files. */
    static boolean holds(Path copy, CopyManifest manifest) throws IOException {
        Map<String, Long> files = new HashMap<>();
        Set<String> directories = new HashSet<>();
        boolean plain = collect(copy, files, directories);
        files.remove(CopyManifest.FILE);
        if (!plain
                || !directories.equals(manifest.directories())
                || files.size() != manifest.files().size()) {
            return false;
        }
        for (CopyManifest.Entry entry : manifest.files()) {
            Long size = files.get(entry.key());
            if (size == null
                    || size != entry.size()
                    || !sha256(copy.resolve(entry.key())).equals(entry.sha256())) {
                return false;
            }
        }
        return true;
    }

    /**
     * Collects the entries below a directory by relative paths; returns whether there are only files and directories.
     */
    private static boolean collect(Path copy, Map<String, Long> files, Set<String> directories) throws IOException {
        boolean[] plain = {true};
        Files.walkFileTree(copy, new SimpleFileVisitor<>() {
            @Override
            public FileVisitResult preVisitDirectory(Path directory, BasicFileAttributes attributes) {
                if (!directory.equals(copy)) {
                    directories.add(key(directory));
                }
                return FileVisitResult.CONTINUE;
            }

            @Override
            public FileVisitResult visitFile(Path file, BasicFileAttributes attributes) {
                plain[0] &= attributes.isRegularFile(); // of a link, these are the link's own
                files.put(key(file), attributes.size());
                return FileVisitResult.CONTINUE;
            }

            private String key(Path path) {
                return copy.relativize(path).toString();
            }
        });
        return plain[0];
    }

    private static String sha256(Path file) throws IOException {
        MessageDigest digest = Fingerprint.sha256();
        byte[] buffer = new byte[BUFFER_BYTES];
        try (InputStream in = Files.newInputStream(file)) {
            for (int read = in.read(buffer); read >= 0; read = in.read(buffer)) {
                digest.update(buffer, 0, read);
            }
        }
        return HexFormat.of().formatHex(digest.digest());
    }
}
