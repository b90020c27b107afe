package dev.nereid.backend.pytorch;

import dev.nereid.backend.pytorch.presets.TorchArgument;
import dev.nereid.backend.pytorch.presets.TorchException;
import dev.nereid.backend.pytorch.presets.TorchExecution;
import dev.nereid.backend.pytorch.presets.TorchModule;
import dev.nereid.backend.pytorch.presets.TorchOutput;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.DataType;
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
 * Compares a configuration with the inputs that a trace was made with, by executions with tensors of ones. Confined to one
 * load.
 *
 * <p>A trace computes with other types and sizes too where its operations do: what fails is refused if it succeeds with the
 * types of the trace.
 */
final class TraceComparison {
    private final ModelContext context;
    private final ModelSettings settings;
    private final TorchModule module;
    private final PyTorchSignature signature;

    private TraceComparison(ModelContext context, TorchModule module, PyTorchSignature signature) {
        this.context = context;
        settings = context.settings();
        this.module = module;
        this.signature = signature;
    }

    /**
     * Compares, as far as the file has the inputs and executions leave the module as it is. Fails if types differ with
     * which the module fails or responds otherwise.
     */
    static void run(ModelContext context, TorchModule module, PyTorchSignature signature) {
        if (!signature.isDictionary()
                && module.effects().leavesModule()
                && !module.mayRunLong()
                && PyTorchCompletion.areKnown(module.schema().arguments())) {
            new TraceComparison(context, module, signature).run();
        }
    }

    private void run() {
        warnOfDimensions();
        try (Arena arena = Arena.ofConfined();
                TorchExecution execution = module.newExecution(1, List.of())) {
            Optional<List<Tensor>> inputs = inputs(arena, true);
            if (inputs.isPresent()) {
                run(arena, execution, inputs.get());
            }
        }
    }

    private void run(Arena arena, TorchExecution execution, List<Tensor> inputs) {
        List<TorchOutput> values;
        try {
            values = execution.run(inputs);
        } catch (TorchException e) {
            int place = differing();
            if (place >= 0 && succeeds(arena, execution)) {
                throw otherType(place, e);
            }
            return; // ones are no values for this module
        }
        try {
            for (PyTorchSignature.Output output : signature.outputs()) {
                ResultChecks.check(output, values.get(ResultChecks.indexOf(output, values)));
            }
        } finally {
            values.forEach(TorchOutput::close);
        }
    }

    private boolean succeeds(Arena arena, TorchExecution execution) {
        Optional<List<Tensor>> inputs = inputs(arena, false);
        try {
            inputs.ifPresent(tensors -> {
                try {
                    execution.run(tensors).forEach(TorchOutput::close);
                } catch (TorchException e) {
                    throw PyTorchErrors.ofExecution(e);
                }
            });
            return inputs.isPresent();
        } catch (BackendException e) {
            return false;
        }
    }

    private BackendException otherType(int place, TorchException failure) {
        String name = signature.inputs().get(place);
        return PyTorchErrors.invalid("unable to load model '" + settings.name() + "', configuration expects datatype "
                + settings.input(name).orElseThrow().type().configName() + " for input '" + name + "', model provides "
                + example(place).orElseThrow().type().configName() + ": "
                + PyTorchErrors.text(String.valueOf(failure.getMessage())));
    }

    private Optional<TorchArgument.Example> example(int place) {
        return module.schema().arguments().get(place).example();
    }

    /** Returns the first argument that has another type in the configuration; -1 if there is none. */
    private int differing() {
        for (int i = 0; i < signature.inputs().size(); i++) {
            Optional<TensorSpec> spec = settings.input(signature.inputs().get(i));
            Optional<TorchArgument.Example> example = example(i);
            if (spec.isPresent()
                    && example.isPresent()
                    && spec.get().type() != example.get().type()) {
                return i;
            }
        }
        return -1;
    }

    private Optional<List<Tensor>> inputs(Arena arena, boolean ofConfiguration) {
        List<Tensor> inputs = new ArrayList<>();
        for (int i = 0; i < signature.inputs().size(); i++) {
            Optional<TorchArgument.Example> example = example(i);
            Optional<DataType> configured = ofConfiguration
                    ? settings.input(signature.inputs().get(i)).map(TensorSpec::type)
                    : Optional.empty();
            Optional<Tensor> input = example.isPresent()
                    ? ExampleInputs.ones(
                            arena,
                            configured.orElse(example.get().type()),
                            example.get().shape())
                    : ExampleInputs.ones(arena, DataType.BYTES, Shape.of(1));
            if (input.isEmpty()) {
                return Optional.empty();
            }
            inputs.add(input.get());
        }
        return Optional.of(inputs);
    }

    private void warnOfDimensions() {
        for (int i = 0; i < signature.inputs().size(); i++) {
            Optional<TensorSpec> spec = settings.input(signature.inputs().get(i));
            Optional<TorchArgument.Example> example = example(i);
            if (spec.isEmpty() || example.isEmpty() || spec.get().is(TensorSpec.Trait.RAGGED)) {
                continue;
            }
            Shape dims = spec.get().backendDims();
            Shape configured = settings.batches() ? dims.prepend(Shape.VARIABLE) : dims;
            if (configured.rank() != example.get().shape().rank()) {
                context.logger()
                        .log(
                                System.Logger.Level.WARNING,
                                "input '" + spec.get().name() + "': the configuration has the shape " + configured
                                        + ", the trace was made with "
                                        + example.get().shape() + " (expected: as many dimensions"
                                        + (settings.batches() ? ", with that of the batch in front)" : ")"));
            }
        }
    }
}
