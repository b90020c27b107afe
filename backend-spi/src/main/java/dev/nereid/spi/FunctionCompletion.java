package dev.nereid.spi;

import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import org.jspecify.annotations.Nullable;

/** Completes configurations from what a function says of its models, and compares the two. Stateless. */
final class FunctionCompletion {
    private FunctionCompletion() {}

    /**
     * Completes a configuration: what it has is kept, and must fit the function.
     *
     * @param function the function, for messages
     * @param declared what the function says
     * @param settings the model as configured so far
     * @return what the configuration lacks; empty if the function says nothing
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the two contradict each other
     */
    static Optional<ModelCompletion> of(BackendProvider function, ModelCompletion declared, ModelSettings settings)
            throws BackendException {
        if (declared.equals(ModelCompletion.EMPTY)) {
            return Optional.empty();
        }
        String where = "model '" + settings.name() + "', backend '" + function.name() + "': ";
        checkBatching(where, declared.maxBatchSize(), settings);
        checkTensors(where + "input", settings.inputs(), declared.inputs());
        checkTensors(where + "output", settings.outputs(), declared.outputs());
        if (!settings.inputs().isEmpty()) {
            checkInputsAreThere(where, settings, declared.inputs());
        }
        ModelCompletion completion = ModelCompletion.EMPTY
                .withInputs(settings.inputs().isEmpty() ? declared.inputs() : List.of())
                .withOutputs(settings.outputs().isEmpty() ? declared.outputs() : List.of());
        if (declared.maxBatchSize().isPresent()) {
            completion = completion.withMaxBatchSize(
                    settings.batches()
                            ? settings.maxBatchSize()
                            : declared.maxBatchSize().getAsInt());
        }
        return Optional.of(declared.dynamicBatching() ? completion.withDynamicBatching() : completion);
    }

    private static void checkBatching(String where, OptionalInt declared, ModelSettings settings)
            throws BackendException {
        if (declared.isPresent() && settings.maxBatchSize() > declared.getAsInt()) {
            throw invalid(where + "max_batch_size: " + settings.maxBatchSize() + " (expected: at most "
                    + declared.getAsInt() + ")");
        }
    }

    private static void checkTensors(String where, List<TensorSpec> configured, List<TensorSpec> declared)
            throws BackendException {
        if (declared.isEmpty()) {
            return;
        }
        for (TensorSpec spec : configured) {
            TensorSpec expected = find(declared, spec.name());
            if (expected == null) {
                throw invalid(where + " '" + spec.name() + "': unknown (expected: one of " + names(declared) + ")");
            }
            if (spec.type() != expected.type()) {
                throw invalid(where + " '" + spec.name() + "': data_type: " + typeName(spec) + " (expected: "
                        + typeName(expected) + ")");
            }
            if (!fits(spec.backendDims(), expected.backendDims())) {
                throw invalid(where + " '" + spec.name() + "': dims: " + spec.backendDims() + " (expected: "
                        + expected.backendDims() + ")");
            }
        }
    }

    private static void checkInputsAreThere(String where, ModelSettings settings, List<TensorSpec> declared)
            throws BackendException {
        for (TensorSpec expected : declared) {
            if (!expected.is(TensorSpec.Trait.OPTIONAL) && find(settings.inputs(), expected.name()) == null) {
                throw invalid(where + "input '" + expected.name() + "': missing (found: " + names(settings.inputs())
                        + "; expected: all of " + names(declared) + ", or none)");
            }
        }
    }

    /** Returns whether some tensor can have both shapes. */
    private static boolean fits(Shape one, Shape other) {
        if (one.rank() != other.rank()) {
            return false;
        }
        for (int i = 0; i < one.rank(); i++) {
            boolean isEqual = one.dim(i) == other.dim(i);
            if (!isEqual && one.dim(i) != Shape.VARIABLE && other.dim(i) != Shape.VARIABLE) {
                return false;
            }
        }
        return true;
    }

    private static @Nullable TensorSpec find(List<TensorSpec> specs, String name) {
        for (TensorSpec spec : specs) {
            if (spec.name().equals(name)) {
                return spec;
            }
        }
        return null;
    }

    /** Returns the name of a type in configurations. */
    private static String typeName(TensorSpec spec) {
        return "TYPE_" + (spec.type() == DataType.BYTES ? "STRING" : spec.type().name());
    }

    private static List<String> names(List<TensorSpec> specs) {
        return specs.stream().map(TensorSpec::name).toList();
    }

    private static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
