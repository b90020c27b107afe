package dev.nereid.backend.tensorflow;

import dev.nereid.backend.natives.ModelErrors;
import dev.nereid.backend.natives.ModelPaths;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.nio.file.Files;
import java.nio.file.Path;

/** Resolves the file of a model, within its own directory. Stateless. */
final class TensorFlowModelPath {
    private static final String SAVED_MODEL_SUFFIX = ".savedmodel";
    private static final String GRAPH_DEF_SUFFIX = ".graphdef";
    private static final String SAVED_MODEL = "model" + SAVED_MODEL_SUFFIX;
    private static final String GRAPH_DEF = "model" + GRAPH_DEF_SUFFIX;
    private static final String SAVED_MODEL_PLATFORM = "tensorflow_savedmodel";
    private static final String GRAPH_DEF_PLATFORM = "tensorflow_graphdef";

    private TensorFlowModelPath() {}

    /**
     * Returns what to load: {@code default_model_filename} of the version, else a directory {@code model.savedmodel},
     * else a file {@code model.graphdef}. A directory is a SavedModel, a file is a graph.
     */
    static Path of(ModelContext context) {
        String model = context.settings().name();
        String filename = context.settings().modelFilename();
        if (filename.isEmpty()) {
            boolean isGraph = Files.exists(context.versionDirectory().resolve(GRAPH_DEF));
            filename = isGraph ? GRAPH_DEF : SAVED_MODEL;
        }
        Path file = ModelPaths.within(context.versionDirectory(), filename, model, "default_model_filename");
        String shown = model + "/" + context.settings().version() + "/" + filename;
        if (!Files.exists(file)) {
            throw new BackendException(
                    ErrorCode.INTERNAL, "unable to find '" + shown + "' for model instance '" + model + "'");
        }
        boolean isDirectory = Files.isDirectory(file);
        if (isGraphDef(context) ? !Files.isRegularFile(file) : !isDirectory) {
            throw ModelErrors.cannotLoad(
                    model,
                    "'" + shown + "': "
                            + (isDirectory ? "a directory" : "a file") + " (expected: "
                            + (isGraphDef(context) ? "a file with a GraphDef" : "the directory of a SavedModel") + ")");
        }
        return file;
    }

    /** Returns whether the model is a graph without a signature, by its platform and files. */
    static boolean isGraphDef(ModelContext context) {
        String platform = context.settings().value("platform").orElse("");
        if (platform.equals(GRAPH_DEF_PLATFORM) || platform.equals(SAVED_MODEL_PLATFORM)) {
            return platform.equals(GRAPH_DEF_PLATFORM);
        }
        String filename = context.settings().modelFilename();
        if (filename.isEmpty()) {
            return Files.exists(context.versionDirectory().resolve(GRAPH_DEF));
        }
        return filename.endsWith(GRAPH_DEF_SUFFIX)
                || (!filename.endsWith(SAVED_MODEL_SUFFIX)
                        && Files.isRegularFile(context.versionDirectory().resolve(filename)));
    }
}
