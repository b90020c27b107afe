package dev.nereid.backend.natives;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.nio.file.Files;
import java.nio.file.Path;

/** Resolves the files that a configuration names, within the model's own directories. Stateless. */
public final class ModelPaths {
    private ModelPaths() {}

    /** Returns a file in a directory of a model; the error names the option if the path leads out of the directory. */
    public static Path within(Path directory, String filename, String model, String option) {
        Path root = directory.toAbsolutePath().normalize();
        Path file = root.resolve(filename).normalize();
        if (!file.startsWith(root) || file.equals(root)) {
            throw ModelErrors.cannotLoad(
                    model, option + ": '" + filename + "' (expected: a path within the model's directory)");
        }
        return file;
    }

    /** Returns a library of operators ({@code op_library_filename}) in the model's directory. */
    public static Path operatorLibrary(ModelContext context, String filename) {
        String model = context.settings().name();
        Path file = within(context.modelDirectory(), filename, model, "op_library_filename");
        if (!Files.isRegularFile(file)) {
            throw new BackendException(
                    ErrorCode.NOT_FOUND,
                    "unable to load model '" + model + "', op_library_filename: '" + filename
                            + "' (expected: a file in the model's directory)");
        }
        return file;
    }

    /** Returns a text of a framework with the names of the model and its version in place of their directories. */
    public static String publicText(ModelContext context, String text) {
        String model = context.settings().name();
        return text.replace(
                        context.versionDirectory().toAbsolutePath().toString(),
                        model + "/" + context.settings().version())
                .replace(context.modelDirectory().toAbsolutePath().toString(), model);
    }
}
