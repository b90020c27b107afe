package dev.nereid.server.repository;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
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
 * @param name the name of the directory, and of the model
 */
public record ModelDirectory(Path root, String name) {
    private static final Logger LOG = LoggerFactory.getLogger(ModelDirectory.class);

    /** Directories that belong to a model and are no versions. */
    private static final Set<String> OTHER_DIRECTORIES = Set.of("warmup", "initial_state", "configs");

    private static final String CONFIG_FILE = "config.pbtxt";
    private static final Pattern DIGITS = Pattern.compile("\\d+");

    public Path path() {
        return root.resolve(name);
    }

    /**
     * Returns the file that configures the model.
     *
     * @param configName the name of a configuration in {@code configs/} that takes precedence; empty for none
     * @return an existing file, or empty if there is none
     * @throws InferenceException {@link ErrorCode#INVALID_ARGUMENT} if it is a pipe or a device
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
        if (Files.exists(file) && !Files.isRegularFile(file) && !Files.isDirectory(file)) {
            throw new InferenceException(
                    ErrorCode.INVALID_ARGUMENT,
                    "failed to read text proto from " + root.relativize(file) + ": not a regular file");
        }
        return Files.isRegularFile(file);
    }

    /**
     * Returns the versions by the names of their directories. Others are ignored, with a warning if they look like one.
     */
    public TreeSet<Long> versions() {
        TreeSet<Long> versions = new TreeSet<>();
        for (Path entry : entries(path())) {
            String directory = entry.getFileName().toString();
            if (Files.isDirectory(entry) && !OTHER_DIRECTORIES.contains(directory)) {
                version(directory).ifPresent(versions::add);
            }
        }
        return versions;
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

    private Optional<Long> version(String directory) {
        if (!DIGITS.matcher(directory).matches()) {
            return ignored("ignore version directory '{}' which fails to convert to integral number", directory);
        }
        if (directory.startsWith("0") && directory.length() > 1) {
            return ignored(
                    "ignore version directory '{}' which contains leading zeros in its directory name", directory);
        }
        try {
            return Optional.of(Long.parseLong(directory));
        } catch (NumberFormatException e) {
            return ignored("ignore version directory '{}' which fails to convert to integral number", directory);
        }
    }

    private Optional<Long> ignored(String text, String directory) {
        LOG.atWarn().addKeyValue("model", name).log(text, directory);
        return Optional.empty();
    }

    private List<Path> entries(Path directory) {
        try (Stream<Path> entries = Files.list(directory)) {
            return entries.sorted().toList();
        } catch (IOException e) {
            throw new InferenceException(
                    ErrorCode.INTERNAL, "model '" + name + "': cannot list its directory: " + e.getMessage());
        }
    }
}
