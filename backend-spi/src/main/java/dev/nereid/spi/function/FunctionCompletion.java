package dev.nereid.spi.function;

import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendProvider;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.TensorSpec;
import java.util.HashSet;
import java.util.List;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.Set;

/** Completes configurations by what a function says of its models. Stateless. */
final class FunctionCompletion {
    private FunctionCompletion() {}

    /**
     * Completes a configuration: its settings are kept, and must fit the function.
     *
     * @param function the function, for messages
     * @param declared the declaration of the function
     * @param settings the model as configured so far
     * @return the missing settings; empty if the function declares nothing
     * @throws BackendException {@link ErrorCode#INVALID_ARGUMENT} if the two contradict each other
     */
    static Optional<ModelCompletion> of(BackendProvider function, ModelCompletion declared, ModelSettings settings) {
        if (declared.equals(ModelCompletion.EMPTY)) {
            return Optional.empty();
        }
        String where = "model '" + settings.name() + "', backend '" + function.name() + "': ";
        checkBatching(where, declared.maxBatchSizeLimit(), settings);
        boolean mayBeWhole =
                !settings.batches() && declared.proposedMaxBatchSize().orElse(0) > 0;
        checkTensors(where + "input", settings.inputs(), declared.inputs(), mayBeWhole);
        checkTensors(where + "output", settings.outputs(), declared.outputs(), mayBeWhole);
        Set<String> supplied = suppliedByServer(settings);
        List<TensorSpec> inputs = declared.inputs().stream()
                .filter(spec -> !supplied.contains(spec.name()))
                .toList();
        if (!settings.inputs().isEmpty()) {
            checkInputsAreThere(where, settings, inputs);
        }
        ModelCompletion completion = ModelCompletion.EMPTY
                .withInputs(settings.inputs().isEmpty() ? inputs : List.of())
                .withOutputs(settings.outputs().isEmpty() ? declared.outputs() : List.of());
        if (declared.proposedMaxBatchSize().isPresent()) {
            completion = completion.withProposedMaxBatchSize(
                    declared.proposedMaxBatchSize().getAsInt());
        }
        if (declared.maxBatchSizeLimit().isPresent()) {
            completion = completion.withMaxBatchSizeLimit(
                    declared.maxBatchSizeLimit().getAsInt());
        }
        return Optional.of(declared.dynamicBatching() ? completion.withDynamicBatching() : completion);
    }

    /** Returns the inputs that no client sends: derived ones, controls and states. */
    private static Set<String> suppliedByServer(ModelSettings settings) {
        Set<String> names = new HashSet<>();
        settings.batchInputs().forEach(input -> names.addAll(input.names()));
        settings.sequenceBatching().ifPresent(sequences -> {
            sequences.controls().forEach(control -> names.add(control.name()));
            sequences.states().forEach(state -> names.add(state.inputName()));
        });
        return names;
    }

    private static void checkBatching(String where, OptionalInt limit, ModelSettings settings) {
        if (limit.isPresent() && settings.maxBatchSize() > limit.getAsInt()) {
            throw invalid(where + "max_batch_size: " + settings.maxBatchSize() + " (expected: at most "
                    + limit.getAsInt() + ")");
        }
    }

    /**
     * Compares tensors.
     *
     * @param mayBeWhole whether the configured dimensions may have the batch dimension as their first one, since the
     *     configuration turns batching off
     */
    private static void checkTensors(
            String where, List<TensorSpec> configured, List<TensorSpec> declared, boolean mayBeWhole) {
        if (declared.isEmpty()) {
            return;
        }
        for (TensorSpec spec : configured) {
            TensorSpec expected = declared.stream()
                    .filter(known -> known.name().equals(spec.name()))
                    .findFirst()
                    .orElseThrow(() -> invalid(
                            where + " '" + spec.name() + "': unknown (expected: one of " + names(declared) + ")"));
            if (spec.type() != expected.type()) {
                throw invalid(where + " '" + spec.name() + "': data_type: "
                        + spec.type().configName() + " (expected: "
                        + expected.type().configName() + ")");
            }
            Shape dims = expected.backendDims();
            if (!fits(spec.backendDims(), dims)
                    && !(mayBeWhole && fits(spec.backendDims(), dims.prepend(Shape.VARIABLE)))) {
                throw invalid(
                        where + " '" + spec.name() + "': dims: " + spec.backendDims() + " (expected: " + dims + ")");
            }
        }
    }

    private static void checkInputsAreThere(String where, ModelSettings settings, List<TensorSpec> declared) {
        for (TensorSpec expected : declared) {
            if (!expected.is(TensorSpec.Trait.OPTIONAL)
                    && settings.input(expected.name()).isEmpty()) {
                throw invalid(where + "input '" + expected.name() + "': missing (found: " + names(settings.inputs())
                        + "; expected: all of " + names(declared) + ", or none)");
            }
        }
    }

    /** Returns whether some tensor can have both shapes. */
    private static boolean fits(Shape first, Shape second) {
        if (first.rank() != second.rank()) {
            return false;
        }
        for (int i = 0; i < first.rank(); i++) {
            boolean isEqual = first.dim(i) == second.dim(i);
            if (!isEqual && first.dim(i) != Shape.VARIABLE && second.dim(i) != Shape.VARIABLE) {
                return false;
            }
        }
        return true;
    }

    private static List<String> names(List<TensorSpec> specs) {
        return specs.stream().map(TensorSpec::name).toList();
    }

    private static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
