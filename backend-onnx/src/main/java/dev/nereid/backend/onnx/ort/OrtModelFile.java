package dev.nereid.backend.onnx.ort;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.util.List;
import java.util.stream.Stream;

/** Finds the model file in a directory. Stateless. */
public final class OrtModelFile {
    private static final String DEFAULT_NAME = "model.onnx";

    private OrtModelFile() {}

    /**
     * Returns the file to load for {@code model}. It is the path itself or, in a directory, {@code model.onnx} or else
     * the only file that ends with {@code .onnx}. Other files there are the model's external data.
     *
     * @throws IOException if there is no such file, or more than one
     */
    public static Path resolve(Path model) throws IOException {
        if (!Files.isDirectory(model)) {
            return model;
        }
        Path named = model.resolve(DEFAULT_NAME);
        if (Files.isRegularFile(named)) {
            return named;
        }
        List<Path> candidates = candidates(model);
        if (candidates.size() != 1) {
            throw new NoSuchFileException(
                    model.toString(),
                    null,
                    candidates.size() + " files named *.onnx (expected: " + DEFAULT_NAME + ", or exactly one)");
        }
        return candidates.getFirst();
    }

    private static List<Path> candidates(Path directory) throws IOException {
        try (Stream<Path> files = Files.list(directory)) {
            return files.filter(file -> file.toString().endsWith(".onnx") && Files.isRegularFile(file))
                    .toList();
        }
    }
}
