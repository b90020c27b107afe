package dev.nereid.spi;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.InvalidPathException;
import java.nio.file.Path;
import java.util.List;

/** Finds the files of a model that parameters name. Static functions only. */
final class ParameterFiles {
    private static final String DIRECTORY = "$$TRITON_MODEL_DIRECTORY";

    private ParameterFiles() {}

    /** Returns the file of a model that a parameter names. */
    static Path find(ModelContext context, String parameter, String text) {
        boolean isInModel = text.startsWith(DIRECTORY + "/");
        String name = isInModel ? text.substring(DIRECTORY.length() + 1) : text;
        List<Path> directories = isInModel
                ? List.of(context.modelDirectory())
                : List.of(context.versionDirectory(), context.modelDirectory());
        try {
            if (!Path.of(name).isAbsolute()) {
                for (Path directory : directories) {
                    Path file = directory.resolve(Path.of(name).normalize());
                    if (isWithin(directory, file) && Files.isRegularFile(file) && isReallyWithin(context, file)) {
                        return file;
                    }
                }
            }
        } catch (InvalidPathException | IOException e) {
            // such as a NUL, or a link in a circle: refused below, as if there were no file
        }
        throw context.parameters()
                .invalid(parameter, "a path of a file in the directory of the version or of the model");
    }

    private static boolean isWithin(Path directory, Path file) {
        return file.toAbsolutePath()
                .normalize()
                .startsWith(directory.toAbsolutePath().normalize());
    }

    /** Returns whether a file lies in a directory of the model, links followed. */
    private static boolean isReallyWithin(ModelContext context, Path file) throws IOException {
        Path real = file.toRealPath();
        for (Path directory : List.of(context.modelDirectory(), context.versionDirectory())) {
            if (Files.exists(directory) && real.startsWith(directory.toRealPath())) {
                return true;
            }
        }
        return false;
    }
}
