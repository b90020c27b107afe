package dev.nereid.server.classification;

import dev.nereid.api.InferenceException;
import dev.nereid.spi.ErrorCode;
import inference.ModelConfig;
import inference.ModelOutput;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** Reads the label files of outputs: one label a line, the first for index 0. Static functions only. */
public final class LabelFiles {
    private LabelFiles() {}

    /**
     * Reads the labels of a model.
     *
     * @param config the model's configuration
     * @return the labels of each output that has a file, in the order of its elements; an empty text is no label
     * @throws InferenceException {@link ErrorCode#INTERNAL} if a file cannot be read, {@link ErrorCode#UNSUPPORTED} if
     *     it lies outside of the model's directory
     */
    public static Map<String, List<String>> read(Path directory, ModelConfig config) {
        Map<String, List<String>> labels = new HashMap<>();
        for (ModelOutput output : config.getOutputList()) {
            if (!output.getLabelFilename().isEmpty()) {
                labels.put(output.getName(), read(directory, config.getName(), output));
            }
        }
        return Map.copyOf(labels);
    }

    private static List<String> read(Path directory, String model, ModelOutput output) {
        String name = output.getLabelFilename();
        Path path = directory.resolve(name.replaceFirst("^/+", "")); // a leading slash is ignored
        try {
            Path file = path.toRealPath();
            if (!file.startsWith(directory.toRealPath())) {
                throw new InferenceException(
                        ErrorCode.UNSUPPORTED,
                        "label file path '" + name + "' for output '" + output.getName() + "' in model '" + model
                                + "' is outside model directory");
            }
            if (!Files.isRegularFile(file)) { // to open a pipe would wait for its writer
                throw new InferenceException(
                        ErrorCode.INTERNAL, "failed to open text file for read " + name + ": not a regular file");
            }
            // Not Files.readAllLines, which refuses bytes that are not UTF-8.
            return new String(Files.readAllBytes(file), StandardCharsets.UTF_8)
                    .lines()
                    .toList();
        } catch (IOException e) {
            throw new InferenceException(
                    ErrorCode.INTERNAL,
                    "failed to open text file for read " + name + ": "
                            + (Files.exists(path) ? "not readable" : "No such file or directory"));
        }
    }
}
