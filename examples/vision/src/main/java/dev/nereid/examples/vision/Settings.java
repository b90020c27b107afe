package dev.nereid.examples.vision;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.util.List;
import org.jspecify.annotations.Nullable;

/** Reads configurations of models. Stateless. */
final class Settings {
    private Settings() {}

    /** Returns the only one of the tensors, which has the given type. */
    static TensorSpec only(String kind, List<TensorSpec> tensors, DataType type) {
        if (tensors.size() != 1 || tensors.getFirst().type() != type) {
            throw invalid(kind, tensors.toString(), "one tensor of " + type);
        }
        return tensors.getFirst();
    }

    /** Returns a parameter: a whole number of at least 1. */
    static int positive(ModelSettings settings, String name, int standard) {
        String text = settings.parameters().getOrDefault(name, String.valueOf(standard));
        try {
            int number = Integer.parseInt(text.strip());
            if (number > 0) {
                return number;
            }
        } catch (NumberFormatException ignored) {
            // refused below, together with numbers that are too small
        }
        throw invalid(name, text, "a whole number from 1 to " + Integer.MAX_VALUE);
    }

    static BackendException invalid(String name, @Nullable String value, String expected) {
        return new BackendException(
                ErrorCode.INVALID_ARGUMENT, name + ": '" + value + "' (expected: " + expected + ")");
    }
}
