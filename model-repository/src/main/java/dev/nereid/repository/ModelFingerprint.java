package dev.nereid.repository;

import dev.nereid.api.InferenceException;
import dev.nereid.api.file.ServerPaths;
import dev.nereid.repository.ModelCopy.CopiedFile;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.NotDirectoryException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import java.util.function.Predicate;

/**
 * The state of a model's files, compared to find changes since its load. Immutable.
 *
 * @param others the other files, such as labels
 * @param config the file that configures the model
 */
public record ModelFingerprint(Map<Long, TreeStamp> versions, Map<String, TreeStamp> others, TreeStamp config) {
    /** Stands for a model that lies in several repositories. */
    public static final ModelFingerprint AMBIGUOUS = new ModelFingerprint(Map.of(), Map.of(), new TreeStamp(-1, 0, 0));

    /** The fingerprint of a model with unreadable files. */
    public static final ModelFingerprint UNREADABLE = new ModelFingerprint(Map.of(), Map.of(), new TreeStamp(-2, 0, 0));

    /** The fingerprint of a model that was loaded from files that no scan has read. */
    public static final ModelFingerprint UNSEEN = new ModelFingerprint(Map.of(), Map.of(), new TreeStamp(-3, 0, 0));

    public ModelFingerprint {
        versions = Map.copyOf(versions);
        others = Map.copyOf(others);
    }

    /**
     * Returns the fingerprint of a model that lies elsewhere.
     *
     * @param text a text that differs for different files
     * @return the fingerprint, equal only to fingerprints of the same text
     */
    public static ModelFingerprint ofRemote(String text) {
        return new ModelFingerprint(Map.of(), Map.of(text, TreeStamp.NONE), new TreeStamp(-3, 0, 0));
    }

    /**
     * Reads the fingerprint of a model. Blocks.
     *
     * @param configFile the file that configures it; empty if there is none
     * @throws dev.nereid.api.InferenceException if the files cannot be read
     */
    public static ModelFingerprint of(ModelDirectory directory, Optional<Path> configFile) {
        Map<Long, TreeStamp> versions = new TreeMap<>();
        for (long version : directory.versions()) {
            versions.put(version, stamp(directory, directory.versionDirectory(version), configFile));
        }
        Map<String, TreeStamp> others = new TreeMap<>();
        for (Path entry : directory.others()) {
            if (!configFile.equals(Optional.of(entry))) {
                others.put(String.valueOf(entry.getFileName()), stamp(directory, entry, configFile));
            }
        }
        TreeStamp config = configFile
                .map(file -> TreeStamp.of(directory.root(), file, _ -> false))
                .orElse(TreeStamp.NONE);
        return new ModelFingerprint(versions, others, config);
    }

    /**
     * Computes the fingerprint of a copy from the objects that it was made of. Each part has its own, whatever the time
     * of its copy.
     *
     * @param configFile the file that configures the model; empty if there is none
     */
    static ModelFingerprint ofCopy(ModelDirectory directory, Optional<Path> configFile, List<CopiedFile> files) {
        String config = configFile
                .map(file -> directory.path().relativize(file).toString())
                .orElse("");
        Map<String, List<CopiedFile>> parts = new TreeMap<>();
        List<CopiedFile> configured = new ArrayList<>();
        for (CopiedFile file : files) {
            List<CopiedFile> part = file.path().equals(config)
                    ? configured
                    : parts.computeIfAbsent(file.path().split("/", 2)[0], _ -> new ArrayList<>());
            part.add(file);
        }
        Map<Long, TreeStamp> versions = new TreeMap<>();
        for (long version : directory.versions()) {
            List<CopiedFile> part = parts.remove(Long.toString(version));
            versions.put(version, TreeStamp.of(part == null ? List.of() : part));
        }
        Map<String, TreeStamp> others = new TreeMap<>();
        parts.forEach((name, part) -> others.put(name, TreeStamp.of(part)));
        return new ModelFingerprint(versions, others, TreeStamp.of(configured));
    }

    private static TreeStamp stamp(ModelDirectory directory, Path path, Optional<Path> configFile) {
        return TreeStamp.of(directory.root(), path, entry -> configFile.equals(Optional.of(entry)));
    }

    /**
     * Returns whether a version was loaded from the same files.
     *
     * @param earlier the fingerprint at its load
     * @return {@code true} if its files and the files that all versions share have not changed, the configuration aside
     */
    public boolean hasSameFiles(long version, ModelFingerprint earlier) {
        return versions.containsKey(version)
                && versions.get(version).equals(earlier.versions.get(version))
                && others.equals(earlier.others);
    }

    /**
     * The state of files, compared to find out whether they have changed. Immutable.
     *
     * @param newestNanos the newest modification time, in nanoseconds since 1970; of copies, a digest of their ETags; 0
     *     without files
     * @param entries the number of files and directories
     * @param bytes the sum of the sizes of the files
     */
    public record TreeStamp(long newestNanos, long entries, long bytes) {
        /** The stamp of no file. */
        public static final TreeStamp NONE = new TreeStamp(0, 0, 0);

        private static final int MAX_DEPTH = 64;

        /**
         * Reads the stamp of a file, or of a directory with all that is in it. Links are not followed into directories; of a
         * link to a file, the file counts as long as it lies in the repository.
         *
         * @param root the file or directory; nothing, if it vanished meanwhile
         * @param without selects entries directly in the directory that do not count
         * @throws InferenceException if the files cannot be read
         */
        static TreeStamp of(Path repository, Path root, Predicate<Path> without) {
            try {
                return read(repository.toRealPath(), root, without, 0);
            } catch (NoSuchFileException e) {
                return NONE;
            } catch (IOException | UncheckedIOException e) {
                throw new InferenceException(
                        ErrorCode.INTERNAL,
                        "cannot read " + repository.relativize(root) + ": " + ServerPaths.reason(e));
            }
        }

        /** Computes the stamp of files that were copied: the same for the same paths, sizes and ETags. */
        static TreeStamp of(List<CopiedFile> files) {
            if (files.isEmpty()) {
                return NONE;
            }
            MessageDigest digest = sha256();
            long bytes = 0;
            List<CopiedFile> sorted = new ArrayList<>(files);
            sorted.sort(Comparator.comparing(CopiedFile::path));
            for (CopiedFile file : sorted) {
                bytes += file.size();
                for (String field : List.of(file.path(), Long.toString(file.size()), file.etag())) {
                    digest.update((field.length() + ":" + field).getBytes(StandardCharsets.UTF_8));
                }
            }
            return new TreeStamp(ByteBuffer.wrap(digest.digest()).getLong(), files.size(), bytes);
        }

        private static MessageDigest sha256() {
            try {
                return MessageDigest.getInstance("SHA-256");
            } catch (NoSuchAlgorithmException e) {
                throw new IllegalStateException("every Java platform has SHA-256", e);
            }
        }

        private static TreeStamp read(Path repository, Path path, Predicate<Path> without, int depth)
                throws IOException {
            if (depth > MAX_DEPTH) {
                throw new IOException("more than " + MAX_DEPTH + " directories in each other");
            }
            BasicFileAttributes attributes = attributes(repository, path);
            TreeStamp stamp = new TreeStamp(
                    attributes.lastModifiedTime().to(TimeUnit.NANOSECONDS),
                    1,
                    attributes.isRegularFile() ? attributes.size() : 0);
            boolean isTree =
                    depth == 0 ? Files.isDirectory(path) : attributes.isDirectory() && !Files.isSymbolicLink(path);
            if (!isTree) {
                return stamp;
            }
            try (DirectoryStream<Path> children = Files.newDirectoryStream(path)) {
                for (Path child : children) {
                    if (depth > 0 || !without.test(child)) {
                        stamp = stamp.plus(readIfPresent(repository, child, without, depth + 1));
                    }
                }
            } catch (NotDirectoryException e) {
                return stamp; // replaced meanwhile
            }
            return stamp;
        }

        private static TreeStamp readIfPresent(Path repository, Path path, Predicate<Path> without, int depth)
                throws IOException {
            try {
                return read(repository, path, without, depth);
            } catch (NoSuchFileException e) {
                return NONE; // deleted meanwhile
            }
        }

        private static BasicFileAttributes attributes(Path repository, Path path) throws IOException {
            BasicFileAttributes own = Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
            if (own.isSymbolicLink()) {
                try {
                    Path target = path.toRealPath();
                    if (target.startsWith(repository)) {
                        return Files.readAttributes(target, BasicFileAttributes.class);
                    }
                } catch (IOException e) {
                    return own; // leads nowhere
                }
            }
            return own;
        }

        private TreeStamp plus(TreeStamp other) {
            return new TreeStamp(
                    Math.max(newestNanos, other.newestNanos), entries + other.entries, bytes + other.bytes);
        }
    }
}
