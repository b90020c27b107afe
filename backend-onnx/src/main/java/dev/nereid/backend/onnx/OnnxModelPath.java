package dev.nereid.backend.onnx;

import dev.nereid.backend.onnx.ort.OrtModelFile;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** Resolves the files that a configuration names, within the model's own directories. Stateless. */
final class OnnxModelPath {
    private static final String DEFAULT_FILENAME = "model.onnx";

    private OnnxModelPath() {}

    /**
     * Returns the file to load. It is {@code default_model_filename} of the version, or the model in a directory of
     * that name.
     */
    static Path of(ModelContext context) {
        String model = context.settings().name();
        String filename = context.settings().modelFilename();
        Path file = within(
                context.versionDirectory(),
                filename.isEmpty() ? DEFAULT_FILENAME : filename,
                model,
                "default_model_filename");
        String shown = model + "/" + context.settings().version() + "/" + file.getFileName();
        if (!Files.exists(file)) {
            throw new BackendException(
                    ErrorCode.INTERNAL,
                    "failed to stat file " + shown + ": unable to find '" + shown + "' for model instance '" + model
                            + "'" + other(context, shown));
        }
        if (!Files.isRegularFile(file) && !Files.isDirectory(file)) { // to open a pipe would wait for its writer
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    "'" + shown + "' for model instance '" + model
                            + "' is neither a regular file nor a directory (expected: one of them)");
        }
        try {
            return OrtModelFile.resolve(file);
        } catch (IOException e) {
            throw new BackendException(
                    ErrorCode.UNAVAILABLE,
                    "unable to find '" + shown + "/" + DEFAULT_FILENAME + "' for model instance '" + model
                            + "' (expected: model.onnx, or exactly one file that ends with .onnx)",
                    e);
        }
    }

    /** Names another model of the version's directory, if the model has one. */
    private static String other(ModelContext context, String shown) {
        try (Stream<Path> files = Files.list(context.versionDirectory())) {
            return files.map(file -> String.valueOf(file.getFileName()))
                    .filter(name -> name.endsWith(".onnx"))
                    .sorted()
                    .findFirst()
                    .map(name -> " (found " + shown.substring(0, shown.lastIndexOf('/') + 1) + name + "; expected "
                            + shown + ", or default_model_filename: \"" + name + "\")")
                    .orElse("");
        } catch (IOException e) {
            return ""; // the text already says that the file is not there
        }
    }

    /** Returns a library of operators ({@code op_library_filename}) in the model's directory. */
    static Path operatorLibrary(ModelContext context, String filename) {
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

    private static Path within(Path directory, String filename, String model, String option) {
        Path root = directory.toAbsolutePath().normalize();
        Path file = root.resolve(filename).normalize();
        if (!file.startsWith(root) || file.equals(root)) {
            throw OnnxErrors.cannotLoad(
                    model, option + ": '" + filename + "' (expected: a path within the model's directory)");
        }
        return file;
    }
}
