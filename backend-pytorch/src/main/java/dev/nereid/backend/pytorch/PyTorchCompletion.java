package dev.nereid.backend.pytorch;

import dev.nereid.backend.natives.Completions;
import dev.nereid.backend.pytorch.presets.TorchArgument;
import dev.nereid.backend.pytorch.presets.TorchException;
import dev.nereid.backend.pytorch.presets.TorchExecution;
import dev.nereid.backend.pytorch.presets.TorchModule;
import dev.nereid.backend.pytorch.presets.TorchOutput;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.Shape;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Completes a configuration from the schema of a module, and from the inputs that its trace was made with. Stateless.
 *
 * <p>A schema has the names of arguments, and says which ones are texts. Types and shapes of tensors are known of a trace
 * alone that was stored with its inputs, as PyTorch does it by default since 2.0.
 */
final class PyTorchCompletion {
    private PyTorchCompletion() {}

    /** Completes a configuration as far as the module shows it; the load refuses one that stays incomplete. */
    static Optional<ModelCompletion> of(ModelContext context, TorchModule module) {
        ModelSettings settings = context.settings();
        if (settings.sequenceBatching().isPresent() || !areKnown(module.schema().arguments())) {
            String reason = areKnown(module.schema().arguments())
                    ? "inputs and outputs of sequences are not completed (expected: input and output in the configuration)"
                    : "the types and shapes of tensors are not in the file (expected: input and output in the"
                            + " configuration; or a trace of PyTorch 2 or later, which has its inputs)";
            context.logger().log(System.Logger.Level.WARNING, "not completed: " + module.schema() + ": " + reason);
            try {
                PyTorchValidation.check(context, module.schema());
            } catch (BackendException e) { // as the load would, with what to do
                throw new BackendException(e.code(), e.getMessage() + "; " + reason);
            }
            return Optional.empty();
        }
        ModelCompletion completion = ModelCompletion.EMPTY;
        if (settings.inputs().isEmpty()) {
            completion = completion.withInputs(inputs(settings, module));
        }
        if (settings.outputs().isEmpty()) {
            completion = completion.withOutputs(outputs(context, module));
        }
        return Optional.of(completion);
    }

    /** Returns whether a file has the types and shapes of all arguments. */
    static boolean areKnown(List<TorchArgument> arguments) {
        return arguments.stream()
                .allMatch(argument -> argument.kind() == TorchArgument.Kind.STRINGS
                        || argument.example().isPresent());
    }

    private static List<TensorSpec> inputs(ModelSettings settings, TorchModule module) {
        List<TensorSpec> specs = new ArrayList<>();
        for (TorchArgument argument : module.schema().arguments()) {
            specs.add(argument.example()
                    .map(example -> spec(settings, argument.name(), example.type(), example.shape()))
                    .orElseGet(() -> texts(settings, argument.name())));
        }
        return specs;
    }

    private static TensorSpec texts(ModelSettings settings, String name) {
        return settings.batches()
                ? TensorSpec.of(name, DataType.BYTES, Shape.of(1)).withReshape(Shape.SCALAR)
                : TensorSpec.of(name, DataType.BYTES, Shape.of(Shape.VARIABLE));
    }

    private static TensorSpec spec(ModelSettings settings, String name, DataType type, Shape shape) {
        if (type == DataType.BYTES) {
            return texts(settings, name);
        }
        if (settings.batches() && shape.rank() == 0) {
            throw PyTorchErrors.invalid("autofill failed for model '" + settings.name() + "': tensor '" + name
                    + "' has no dimension for a batch (expected: max_batch_size 0)");
        }
        return Completions.tensor(name, type, shape, settings.batches());
    }

    /** Executes the module once, with the shapes of its trace. */
    private static List<TensorSpec> outputs(ModelContext context, TorchModule module) {
        ModelSettings settings = context.settings();
        if (module.mayRunLong()) {
            throw PyTorchErrors.invalid("autofill failed for model '" + settings.name()
                    + "': the script may run long, so it is not tried (expected: output in the configuration)");
        }
        try (Arena arena = Arena.ofConfined();
                TorchExecution execution = module.newExecution(1, List.of())) {
            List<Tensor> inputs = new ArrayList<>();
            for (TorchArgument argument : module.schema().arguments()) {
                inputs.add(input(arena, argument).orElseThrow(() -> tooLarge(settings, argument)));
            }
            List<TorchOutput> values = execution.run(inputs);
            try {
                return outputs(settings, values);
            } finally {
                values.forEach(TorchOutput::close);
            }
        } catch (TorchException e) {
            throw PyTorchErrors.invalid("autofill failed for model '" + settings.name()
                    + "': the script fails with tensors of ones (expected: output in the configuration): "
                    + PyTorchErrors.text(String.valueOf(e.getMessage())));
        }
    }

    private static BackendException tooLarge(ModelSettings settings, TorchArgument argument) {
        return PyTorchErrors.invalid("autofill failed for model '" + settings.name() + "': argument '" + argument.name()
                + "' of the trace is too large to be tried (expected: output in the configuration)");
    }

    private static Optional<Tensor> input(Arena arena, TorchArgument argument) {
        return argument.example()
                .map(example -> ExampleInputs.ones(arena, example.type(), example.shape()))
                .orElseGet(() -> ExampleInputs.ones(arena, DataType.BYTES, Shape.of(1)));
    }

    private static List<TensorSpec> outputs(ModelSettings settings, List<TorchOutput> values) {
        List<TensorSpec> specs = new ArrayList<>();
        for (int i = 0; i < values.size(); i++) {
            TorchOutput value = values.get(i);
            if (value.type().isEmpty()) {
                throw PyTorchErrors.invalid("autofill failed for model '" + settings.name() + "': value " + i
                        + " of the result is no tensor of a type of TorchScript that clients know: "
                        + value.typeText());
            }
            String name = value.key().isEmpty() ? "OUTPUT__" + i : value.key();
            specs.add(spec(settings, name, value.type().get(), value.shape()));
        }
        return specs;
    }
}
