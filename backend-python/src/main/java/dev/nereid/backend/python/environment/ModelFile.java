package dev.nereid.backend.python.environment;

import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import java.io.IOException;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The Python file that serves a model. Immutable.
 *
 * @param file its absolute path
 * @param moduleName the name under which it is imported: {@code 1.model} for a model, {@code model} for a backend that
 *     is written in Python
 * @param searchPath the directories that are appended to {@code sys.path}, in their order
 */
public record ModelFile(Path file, String moduleName, List<Path> searchPath) {
    private static final String MODEL_PY = "model.py";
    private static final String SUFFIX = ".py";
    private static final String REFUSED = ";|&$<>()[]{}\\\"'*?~#!`";

    public ModelFile {
        searchPath = List.copyOf(searchPath);
    }

    /** Returns whether a directory is a backend that is written in Python: it has {@code model.py} and no jar. */
    public static boolean isBackend(Path directory) {
        return Files.isRegularFile(directory.resolve(MODEL_PY))
                && list(directory, "*.jar").isEmpty();
    }

    /**
     * Finds the file, which exists, of a model of the backend {@code python}. Reads directories.
     *
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the name of the model has characters that are
     *     refused; {@link ErrorCode#INTERNAL} if there is no such file, or its name does not end in {@code .py}, with
     *     the texts of the reference
     */
    public static ModelFile of(ModelContext model) {
        checkName(model);
        return ofModel(model.settings(), absolute(model.versionDirectory()), absolute(model.modelDirectory()))
                .checked(model);
    }

    /**
     * Finds the file of a model of a backend that is written in Python: the backend's file. Reads directories.
     *
     * @param backend the backend; {@link #isBackend} held for its directory when it was created
     * @return the file, which exists
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the name of the model has characters that are
     *     refused, or if the program of the backend is gone
     */
    public static ModelFile of(ModelContext model, BackendContext backend) {
        checkName(model);
        Path directory = absolute(backend.pluginDirectory());
        Path file = directory.resolve(MODEL_PY);
        if (!Files.isRegularFile(file)) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "unable to find backend library for backend '" + backend.name()
                            + "', try specifying runtime on the model configuration.");
        }
        return new ModelFile(file, "model", List.of(directory)).checked(model);
    }

    private static void checkName(ModelContext model) {
        if (model.settings().name().chars().anyMatch(c -> REFUSED.indexOf(c) >= 0)) {
            throw new BackendException(ErrorCode.INVALID_ARGUMENT, "Invalid stub name: contains invalid characters");
        }
    }

    /** Refuses directories that a list of lines cannot have. */
    private ModelFile checked(ModelContext model) {
        for (Path directory : searchPath) {
            if (directory.toString().indexOf('\n') >= 0) {
                throw new BackendException(
                        ErrorCode.INVALID_ARGUMENT,
                        "directory of model '" + model.settings().name()
                                + "': a path with a line feed (expected: none)");
            }
        }
        return this;
    }

    private static ModelFile ofModel(ModelSettings settings, Path version, Path model) {
        String name = settings.modelFilename().isEmpty() ? MODEL_PY : settings.modelFilename();
        if (!name.endsWith(SUFFIX)) {
            throw new BackendException(
                    ErrorCode.INTERNAL, "Model name must end with '.py'. Model name is \"" + name + "\".");
        }
        Path file = absolute(version.resolve(name));
        if (!Files.isRegularFile(file)) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "Failed to preinitialize Python stub: Python model file not found in '" + file + "'"
                            + others(version));
        }
        String stem = file.getFileName().toString();
        return new ModelFile(
                file,
                settings.version() + "." + stem.substring(0, stem.length() - SUFFIX.length()),
                List.of(version, model));
    }

    /** Says how a file with another name is found. */
    private static String others(Path version) {
        List<Path> files = list(version, "*" + SUFFIX);
        String found = files.isEmpty()
                ? ""
                : "; default_model_filename may name another one, such as "
                        + files.stream().sorted().findFirst().orElseThrow().getFileName();
        return " (expected: this file" + found + ")";
    }

    private static List<Path> list(Path directory, String glob) {
        List<Path> found = new ArrayList<>();
        try (DirectoryStream<Path> files = Files.newDirectoryStream(directory, glob)) {
            files.forEach(found::add);
        } catch (IOException | DirectoryIteratorException e) {
            return List.of(); // not a directory, or not readable: nothing is found
        }
        return found;
    }

    /** Returns the path from the root, shortened where that cannot change its target. */
    private static Path absolute(Path path) {
        Path absolute = path.toAbsolutePath();
        for (Path name : absolute) {
            if (name.toString().equals("..")) {
                return absolute;
            }
        }
        return absolute.normalize();
    }
}
