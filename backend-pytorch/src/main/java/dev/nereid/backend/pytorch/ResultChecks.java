package dev.nereid.backend.pytorch;

import dev.nereid.backend.pytorch.presets.TorchOutput;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import java.util.HashSet;
import java.util.List;
import java.util.Set;
import java.util.stream.Collectors;

/** Compares the values of a result with the outputs of a configuration. Stateless. */
final class ResultChecks {
    private static final int MAX_KEYS = 20;
    private static final int MAX_CHARACTERS = 100;

    private ResultChecks() {}

    /** Finds an output among the values of a result; throws a {@link BackendException} if there is none. */
    static int indexOf(PyTorchSignature.Output output, List<TorchOutput> values) {
        for (int i = 0; i < values.size(); i++) {
            if (values.get(i).key().equals(output.name())) {
                return i;
            }
        }
        if (output.index() < values.size() && values.get(output.index()).key().isEmpty()) {
            return output.index();
        }
        Set<String> keys = new HashSet<>();
        values.forEach(value -> keys.add(value.key()));
        keys.remove("");
        if (!keys.isEmpty()) {
            throw PyTorchErrors.invalid("output '" + output.name() + "' is not found in the dictionary of the result"
                    + " (expected: one of "
                    + keys.stream()
                            .sorted()
                            .limit(MAX_KEYS)
                            .map(ResultChecks::shortened)
                            .collect(Collectors.joining(", "))
                    + ")");
        }
        throw PyTorchValidation.missing(output.name(), values.size());
    }

    private static String shortened(String key) {
        return key.length() <= MAX_CHARACTERS ? key : key.substring(0, MAX_CHARACTERS) + "…";
    }

    /** Refuses a value that is not of the configured type. */
    static void check(PyTorchSignature.Output output, TorchOutput value) {
        switch (value.kind()) {
            case SPARSE ->
                throw PyTorchErrors.internal("output tensor '" + output.name()
                        + "' is not found: it is sparse (expected: a dense tensor, as to_dense() makes it)");
            case OTHER ->
                throw PyTorchErrors.internal("PyTorch execute failure: output '" + output.name()
                        + "': Expected Tensor but got " + value.typeText());
            case STRINGS -> {
                if (output.type() != DataType.BYTES) {
                    throw otherType(output, DataType.BYTES.configName());
                }
            }
            case TENSOR -> {
                String type =
                        value.type().map(DataType::configName).orElse("TYPE_<invalid> (" + value.typeText() + ")");
                if (!type.equals(output.type().configName())) {
                    throw otherType(output, type);
                }
            }
        }
    }

    private static BackendException otherType(PyTorchSignature.Output output, String provided) {
        return PyTorchErrors.invalid("configuration expects datatype "
                + output.type().configName() + " for output '" + output.name() + "', model provides " + provided);
    }
}
