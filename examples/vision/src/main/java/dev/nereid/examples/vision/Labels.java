package dev.nereid.examples.vision;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The labels of a network's outputs. Immutable.
 *
 * @param names the labels, in the order of the outputs
 */
record Labels(List<String> names) {
    private static final String FILE = "labels.txt";

    Labels {
        names = List.copyOf(names);
    }

    /** Reads {@code labels.txt} in the directory of a model: one label a line. */
    static Labels read(ModelContext model) {
        Path file = model.modelDirectory().resolve(FILE);
        try {
            List<String> lines = Files.readAllLines(file);
            if (lines.isEmpty()) {
                throw new BackendException(ErrorCode.INVALID_ARGUMENT, FILE + ": empty (expected: one label a line)");
            }
            return new Labels(lines);
        } catch (IOException e) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    FILE + ": cannot be read (expected: a text file in the directory of the model, one label a line)",
                    e);
        }
    }

    /** Returns the label of an output; {@code #<number>} for one that has none. */
    String of(int output) {
        return output < names.size() ? names.get(output) : "#" + output;
    }
}
