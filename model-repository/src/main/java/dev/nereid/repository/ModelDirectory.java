package dev.nereid.repository;

import dev.nereid.api.InferenceException;
import dev.nereid.api.file.ContainedPath;
import dev.nereid.api.file.ServerPaths;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.TreeSet;
import java.util.regex.Pattern;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The directory of one model. Immutable; reads the disk at each call, on control threads.
 *
 * @param root the repository that holds it
 * @param path where its files lie
 * @param key the {@linkplain ModelKey key} of the model
 */
public record ModelDirectory(Path root, String name, Path path, String key) {
    private static final Logger LOG = LoggerFactory.getLogger(ModelDirectory.class);

    /** Directories that belong to a model and are no versions. */
    private static final Set<String> OTHER_DIRECTORIES = Set.of("warmup", "initial_state", "configs");

    private static final String CONFIG_FILE = "config.pbtxt";
    private static final Pattern DIGITS = Pattern.compile("\\d+");

    /** Creates a directory in a repository without a namespace. */
    public ModelDirectory(Path root, String name) {
        this(root, name, root.resolve(name), name);
    }

    /** Returns the same directory with another {@linkplain ModelKey key} of the model. */
    public ModelDirectory as(String other) {
        return new ModelDirectory(root, name, path, other);
    }

    /** Returns the directory of the same model at another place. */
    public ModelDirectory at(Path path) {
        Path parent = path.toAbsolutePath().getParent();
        return path.equals(this.path) ? this : new ModelDirectory(parent == null ? root : parent, name, path, key);
    }

    /**
     * Returns the file that configures the model.
     *
     * @param configName the name of a configuration in {@code configs/} that takes precedence; empty for none
     * @return an existing file, or empty if there is none
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if it is a pipe or a device, or a link out of the
     *     repository
     */
    public Optional<Path> configFile(String configName) {
        Path named = path().resolve("configs").resolve(configName + ".pbtxt");
        if (!configName.isEmpty() && isFile(named)) {
            return Optional.of(named);
        }
        Path usual = path().resolve(CONFIG_FILE);
        return isFile(usual) ? Optional.of(usual) : Optional.empty();
    }

    /** Returns whether a file exists that can be opened. Opening a pipe would wait for its writer. */
    private boolean isFile(Path file) {
        if (Files.isSymbolicLink(file) && Files.exists(file)) {
            ContainedPath.existing(
                    "model configuration", root, file, root.relativize(file).toString());
        }
        if (Files.exists(file) && !Files.isRegularFile(file) && !Files.isDirectory(file)) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "failed to read text proto from " + root.relativize(file) + ": not a regular file");
        }
        return Files.isRegularFile(file);
    }

    /** Returns the versions by the names of their directories. Others are ignored. */
    public TreeSet<Long> versions() {
        TreeSet<Long> versions = new TreeSet<>();
        for (Path entry : entries(path())) {
            String directory = entry.getFileName().toString();
            if (isVersion(directory) && Files.isDirectory(entry)) {
                versions.add(Long.parseLong(directory));
            }
        }
        return versions;
    }

    /** Warns of directories that are named like versions and are ignored. */
    public void reportIgnored() {
        for (Path entry : entries(path())) {
            String directory = entry.getFileName().toString();
            boolean isOther = OTHER_DIRECTORIES.contains(directory) || isOfVolume(directory);
            if (Files.isDirectory(entry) && !isOther && !isVersion(directory)) {
                boolean isPadded = DIGITS.matcher(directory).matches() && directory.startsWith("0");
                LOG.atWarn()
                        .addKeyValue("model", name)
                        .log(
                                isPadded
                                        ? "model '{}': ignore version directory '{}' which contains leading zeros in its"
                                                + " directory name"
                                        : "model '{}': ignore version directory '{}' which fails to convert to integral number",
                                name,
                                directory);
            }
        }
    }

    /** Returns whether an entry belongs to a mounted Kubernetes volume. Files of such a volume are links into it. */
    static boolean isOfVolume(String name) {
        return name.startsWith("..");
    }

    /** Returns whether a directory of this name is a version. */
    static boolean isVersion(String directory) {
        if (!DIGITS.matcher(directory).matches() || (directory.startsWith("0") && directory.length() > 1)) {
            return false;
        }
        try {
            return Long.parseLong(directory) >= 0;
        } catch (NumberFormatException e) {
            return false; // too large
        }
    }

    /** Returns the entries that are no versions, in the order of their names. */
    List<Path> others() {
        List<Path> others = new ArrayList<>(entries(path()));
        others.removeIf(entry -> {
            String entryName = String.valueOf(entry.getFileName());
            return isOfVolume(entryName) || (isVersion(entryName) && Files.isDirectory(entry));
        });
        return others;
    }

    /**
     * Refuses a directory that is a link out of its repository.
     *
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if it is
     */
    public void checkContained() {
        ContainedPath.existing("model directory", root, path(), name);
    }

    /**
     * Refuses version directories that are or have links out of their repository.
     *
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if there is one, with its path
     */
    public void checkContained(Iterable<Long> versions) {
        for (long version : versions) {
            ContainedPath.tree("model file", root, versionDirectory(version));
        }
    }

    /**
     * Refuses versions that are links out of their repository, and links that lead nowhere if there is no other version.
     *
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if there is one, {@link ErrorCode#NOT_FOUND} if it
     *     leads nowhere
     */
    public void checkVersionDirectories() {
        boolean isAny = !versions().isEmpty();
        for (Path entry : entries(path())) {
            boolean isLink = isVersion(String.valueOf(entry.getFileName())) && Files.isSymbolicLink(entry);
            if (isLink && (Files.exists(entry) || !isAny)) {
                ContainedPath.existing(
                        "model file", root, entry, root.relativize(entry).toString());
            }
        }
    }

    public Path versionDirectory(long version) {
        return path().resolve(Long.toString(version));
    }

    /**
     * Returns the names of the entries in the first version's directory. The first version is the first by name as
     * text; names of directories end in {@code /}.
     */
    public Set<String> firstVersionEntries() {
        Optional<String> first =
                versions().stream().map(String::valueOf).sorted().findFirst();
        Set<String> names = new TreeSet<>();
        if (first.isPresent()) {
            for (Path entry : entries(path().resolve(first.get()))) {
                names.add(entry.getFileName() + (Files.isDirectory(entry) ? "/" : ""));
            }
        }
        return names;
    }

    private List<Path> entries(Path directory) {
        try (Stream<Path> entries = Files.list(directory)) {
            return entries.sorted().toList();
        } catch (IOException e) {
            throw new InferenceException(
                    ErrorCode.INTERNAL, "model '" + name + "': cannot list its directory: " + ServerPaths.reason(e));
        }
    }
}
