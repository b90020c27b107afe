package dev.nereid.backend.onnx;

import dev.nereid.backend.natives.ModelPaths;
import dev.nereid.backend.onnx.ort.OrtModelFile;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.stream.Stream;

/** Resolves the file of a model, within its own directory. Stateless. */
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
        Path file = ModelPaths.within(
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
}
