package dev.nereid.repository.storage;

import dev.nereid.repository.ModelCopy;
import java.io.IOException;
import java.io.InputStream;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileVisitResult;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.SimpleFileVisitor;
import java.nio.file.attribute.BasicFileAttributes;
import java.security.MessageDigest;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.HexFormat;
import java.util.Iterator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.SequencedSet;
import java.util.Set;
import java.util.TreeSet;

/**
 * The list of the files and directories in a complete copy of a model. Immutable.
 *
 * <p>It lies beside the model's directory, and is the last file of a copy that is written. One line for each directory
 * and file, fields separated by tabs. Keys and ETags contain no tabs.
 *
 * @param fingerprint the fingerprint of the objects that were copied
 */
record CopyManifest(String model, String fingerprint, SequencedSet<String> directories, List<Entry> files) {
    static final String FILE = "manifest";
    private static final String HEADER = "nereid-model-copy 1";
    private static final String END = "end";
    private static final long MAX_BYTES = 256L << 20;
    private static final int BUFFER_BYTES = 1 << 18;

    /**
     * A file of a copy. Immutable.
     *
     * @param key the path of the file, which begins with the model's name
     * @param size the size in bytes
     * @param etag the ETag of the object
     * @param sha256 the digest of the content, in hexadecimal digits
     */
    record Entry(String key, long size, String etag, String sha256) {}

    CopyManifest {
        directories = new TreeSet<>(directories);
        files = List.copyOf(files);
    }

    /** Returns the files by their paths in the model's directory. */
    List<ModelCopy.CopiedFile> copiedFiles() {
        return files.stream()
                .map(file ->
                        new ModelCopy.CopiedFile(file.key().substring(model.length() + 1), file.size(), file.etag()))
                .toList();
    }

    void write(LocalFiles target, Path copy) throws IOException {
        StringBuilder text = new StringBuilder();
        line(text, HEADER, model, fingerprint);
        directories.forEach(directory -> line(text, "directory", directory));
        files.forEach(file -> line(text, "file", file.sha256(), String.valueOf(file.size()), file.etag(), file.key()));
        line(text, END, String.valueOf(directories.size() + files.size()));
        try (OutputStream out = target.create(copy.resolve(FILE))) {
            out.write(text.toString().getBytes(StandardCharsets.UTF_8));
        }
    }

    /**
     * Reads the manifest of a copy.
     *
     * @return the manifest; empty if there is none, or not all of it
     * @throws IOException if it cannot be read
     */
    static Optional<CopyManifest> read(Path copy) throws IOException {
        Path file = copy.resolve(FILE);
        if (!Files.isRegularFile(file) || Files.size(file) > MAX_BYTES) {
            return Optional.empty();
        }
        Iterator<String> lines = new String(Files.readAllBytes(file), StandardCharsets.UTF_8)
                .lines()
                .iterator();
        String[] header = next(lines);
        if (header.length != 3 || !header[0].equals(HEADER)) {
            return Optional.empty();
        }
        TreeSet<String> directories = new TreeSet<>();
        List<Entry> files = new ArrayList<>();
        for (String[] line = next(lines); line.length > 0; line = next(lines)) {
            if (line.length == 2 && line[0].equals(END)) {
                return line[1].equals(String.valueOf(directories.size() + files.size()))
                        ? Optional.of(new CopyManifest(header[1], header[2], directories, files))
                        : Optional.empty();
            }
            if (line.length == 2 && line[0].equals("directory")) {
                directories.add(line[1]);
            } else if (line.length == 5 && line[2].matches("\\d{1,18}")) {
                files.add(new Entry(line[4], Long.parseLong(line[2]), line[3], line[1]));
            } else {
                return Optional.empty();
            }
        }
        return Optional.empty();
    }

    private static String[] next(Iterator<String> lines) {
        return lines.hasNext() ? lines.next().split("\t", -1) : new String[0];
    }

    private static void line(StringBuilder text, String... fields) {
        text.append(String.join("\t", fields)).append('\n');
    }

    /** Returns whether a copy, which another process left, holds exactly these files and directories. Reads all files. */
    boolean isOf(Path copy) throws IOException {
        Map<String, Long> sizes = new HashMap<>();
        Set<String> found = new HashSet<>();
        boolean plain = collect(copy, sizes, found);
        sizes.remove(FILE);
        if (!plain || !found.equals(directories) || sizes.size() != files.size()) {
            return false;
        }
        for (Entry entry : files) {
            Long size = sizes.get(entry.key());
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
