package dev.nereid.server.repository;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.TreeMap;
import java.util.stream.Stream;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;

/**
 * The repository directories of a server: each subdirectory is a model. Immutable; reads the disk at each call, on
 * control threads.
 */
public final class ModelRepository {
    private static final Logger LOG = LoggerFactory.getLogger(ModelRepository.class);

    private final List<Path> roots;

    /**
     * Creates a repository.
     *
     * @param roots its directories
     */
    public ModelRepository(List<Path> roots) {
        this.roots = List.copyOf(roots);
    }

    /**
     * Lists the models. Files and hidden directories are ignored, the latter with a warning.
     *
     * @return the models
     * @throws InferenceException if a directory cannot be read
     */
    public RepositoryScan scan() {
        TreeMap<String, ModelDirectory> models = new TreeMap<>();
        Set<String> duplicates = new HashSet<>();
        for (Path root : roots) {
            for (Path directory : directories(root)) {
                String name = directory.getFileName().toString();
                if (name.startsWith(".")) {
                    LOG.atWarn()
                            .addKeyValue("directory", directory)
                            .log("hidden directory in model repository ignored");
                } else if (models.putIfAbsent(name, new ModelDirectory(root, name)) != null) {
                    duplicates.add(name);
                }
            }
        }
        models.keySet().removeAll(duplicates);
        return new RepositoryScan(new ArrayList<>(models.values()), duplicates);
    }

    private static List<Path> directories(Path root) {
        try (Stream<Path> entries = Files.list(root)) {
            return entries.filter(Files::isDirectory).sorted().toList();
        } catch (IOException e) {
            throw new InferenceException(
                    ErrorCode.INTERNAL, "model repository: cannot list " + root + ": " + e.getMessage());
        }
    }
}
