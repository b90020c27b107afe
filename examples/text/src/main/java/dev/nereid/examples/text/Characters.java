package dev.nereid.examples.text;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.TensorSpec;
import java.io.IOException;
import java.nio.file.Files;
import java.util.List;

/** Reads files and configurations of models. Stateless. */
final class Characters {
    private Characters() {}

    /** Reads a file in the directory of a model: one entry a line, with at least one. */
    static List<String> read(ModelContext model, String file) {
        try {
            List<String> lines = Files.readAllLines(model.modelDirectory().resolve(file));
            if (!lines.isEmpty()) {
                return List.copyOf(lines);
            }
        } catch (IOException e) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    file + ": cannot be read (expected: a text file in the directory of the model)",
                    e);
        }
        throw invalid(file, "empty", "one entry a line");
    }

    static TensorSpec only(String kind, List<TensorSpec> tensors, DataType type) {
        List<TensorSpec> found =
                tensors.stream().filter(tensor -> tensor.type() == type).toList();
        if (found.size() != 1) {
            throw invalid(kind, tensors.toString(), "one of " + type);
        }
        return found.getFirst();
    }

    static BackendException invalid(String name, String value, String expected) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, name + ": " + value + " (expected: " + expected + ")");
    }
}
