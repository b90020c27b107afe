package dev.nereid.backend.pytorch;

import dev.nereid.backend.pytorch.presets.TorchException;
import dev.nereid.backend.pytorch.presets.TorchExecution;
import dev.nereid.backend.pytorch.presets.TorchModule;
import dev.nereid.backend.pytorch.presets.TorchOutput;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BatchInput;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.Shape;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.Tensor;
import dev.nereid.spi.TensorSpec;
import java.lang.foreign.Arena;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Optional;

/**
 * Executes a module before the first request: PyTorch records the first execution of a script and optimizes it in the second,
 * which takes many times as long as a later one. Confined to one load.
 */
final class WarmUp {
    /** The number of executions in which PyTorch may compile a script. */
    static final int COMPILING_RUNS = 2;

    private static final int RUNS = COMPILING_RUNS + 2;

    /** Later runs of a module that takes longer are left to its first requests. */
    private static final Duration MAX_RUN = Duration.ofSeconds(2);

    /**
     * Result of the executions.
     *
     * @param isCompiled whether PyTorch has optimized the script
     * @param execution the time of the last one; empty unless all dimensions are known, so that a request of one item
     *     takes as long
     */
    record Outcome(boolean isCompiled, Optional<Duration> execution) {
        private static final Outcome NONE = new Outcome(false, Optional.empty());
    }

    private final ModelSettings settings;

    private WarmUp(ModelSettings settings) {
        this.settings = settings;
    }

    /** Executes a module with ones if that leaves it as it is. A failure is no error: scripts may want other values. */
    static Outcome run(ModelContext context, TorchModule module, PyTorchSignature signature) {
        if (!module.effects().leavesModule() || module.mayRunLong()) {
            return Outcome.NONE;
        }
        try (Arena arena = Arena.ofConfined()) {
            Optional<List<Tensor>> inputs = new WarmUp(context.settings()).inputs(arena, signature);
            if (inputs.isEmpty()) {
                return Outcome.NONE;
            }
            Duration last = run(context, module, signature, inputs.get());
            return new Outcome(
                    last.compareTo(MAX_RUN) < 0,
                    hasOpenDimensions(context.settings()) ? Optional.empty() : Optional.of(last));
        } catch (TorchException | BackendException e) {
            context.logger().log(System.Logger.Level.DEBUG, "not executed before the first request: " + e.getMessage());
            return Outcome.NONE;
        }
    }

    /** Logs with what text requests will fail, if the result does not depend on their values. */
    private static void warnOfDifferences(ModelContext context, PyTorchSignature signature, List<TorchOutput> values) {
        try {
            for (PyTorchSignature.Output output : signature.outputs()) {
                ResultChecks.check(output, values.get(ResultChecks.indexOf(output, values)));
            }
        } catch (BackendException e) {
            context.logger()
                    .log(
                            System.Logger.Level.WARNING,
                            "requests of model '" + context.settings().name() + "' may fail: " + e.getMessage());
        }
    }

    private static Duration run(
            ModelContext context, TorchModule module, PyTorchSignature signature, List<Tensor> inputs)
            throws TorchException {
        Duration last = Duration.ZERO;
        try (TorchExecution execution = module.newExecution(1, signature.keys())) {
            for (int i = 0; i < RUNS && last.compareTo(MAX_RUN) < 0; i++) {
                long begin = System.nanoTime();
                List<TorchOutput> values = execution.run(inputs);
                last = Duration.ofNanos(System.nanoTime() - begin);
                if (i == 0) {
                    warnOfDifferences(context, signature, values);
                }
                values.forEach(TorchOutput::close);
            }
        }
        return last;
    }

    private static boolean hasOpenDimensions(ModelSettings settings) {
        return settings.inputs().stream().anyMatch(input -> isOpen(input.backendDims()));
    }

    private static boolean isOpen(Shape dims) {
        for (int i = 0; i < dims.rank(); i++) {
            if (dims.dim(i) == Shape.VARIABLE) {
                return true;
            }
        }
        return false;
    }

    private Optional<List<Tensor>> inputs(Arena arena, PyTorchSignature signature) {
        List<Tensor> inputs = new ArrayList<>();
        for (String name : signature.inputs()) {
            Optional<Tensor> tensor = input(arena, name);
            if (tensor.isEmpty()) {
                return Optional.empty();
            }
            inputs.add(tensor.get());
        }
        return Optional.of(inputs);
    }

    private Optional<Tensor> input(Arena arena, String name) {
        Optional<TensorSpec> plain = settings.input(name);
        if (plain.isPresent()) {
            boolean isFlat = plain.get().is(TensorSpec.Trait.RAGGED);
            return isFlat
                    ? ExampleInputs.ones(arena, plain.get().type(), Shape.of(1))
                    : one(arena, plain.get().type(), plain.get().backendDims());
        }
        for (BatchInput derived : settings.batchInputs()) {
            if (derived.names().contains(name)) {
                return Optional.empty(); // its numbers depend on the numbers of others
            }
        }
        Optional<SequenceBatching> sequences = settings.sequenceBatching();
        for (ControlInput control : sequences.map(SequenceBatching::controls).orElse(List.of())) {
            if (control.name().equals(name)) {
                return one(arena, control.type(), Shape.of(1));
            }
        }
        for (StateSpec state : sequences.map(SequenceBatching::states).orElse(List.of())) {
            if (state.inputName().equals(name)) {
                return one(arena, state.type(), state.dims());
            }
        }
        return Optional.empty();
    }

    private Optional<Tensor> one(Arena arena, DataType type, Shape dims) {
        long[] sizes = dims.toArray();
        for (int i = 0; i < sizes.length; i++) {
            sizes[i] = sizes[i] == Shape.VARIABLE ? 1 : sizes[i];
        }
        Shape shape = Shape.of(sizes);
        return ExampleInputs.ones(arena, type, settings.batches() ? shape.prepend(1) : shape);
    }
}
