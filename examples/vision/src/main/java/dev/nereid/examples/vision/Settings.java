package dev.nereid.examples.vision;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.TensorSpec;
import java.util.List;

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
    static int positive(ModelContext model, String name, int standard) {
        return model.parameters().integer(name, 1, Integer.MAX_VALUE).orElse(standard);
    }

    static BackendException invalid(String name, String value, String expected) {
        return new BackendException(
                ErrorCode.INVALID_ARGUMENT, name + ": '" + value + "' (expected: " + expected + ")");
    }
}
