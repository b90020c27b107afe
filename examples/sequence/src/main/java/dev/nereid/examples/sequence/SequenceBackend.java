package dev.nereid.examples.sequence;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.time.Duration;
import java.util.List;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/**
 * Loads models that add up {@code INPUT} for each place of the batch. Immutable.
 *
 * <p>An addition takes no time, so direct execution on the submitting thread is safe. The instances of a model with a
 * delay have threads of their own, which may wait.
 */
final class SequenceBackend implements Backend {
    static final String INPUT = "INPUT";
    static final String OUTPUT = "OUTPUT";

    private static final String DELAY = "execute_delay_ms";
    private static final BackendTraits TRAITS =
            BackendTraits.DEFAULT.withExecution(BackendTraits.Execution.SHORT).withParallelInstances();

    private final LongSupplier nanoTime;

    SequenceBackend(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Model load(ModelContext context) {
        ModelSettings settings = context.settings();
        check("input", INPUT, settings.input(INPUT));
        check("output", OUTPUT, settings.output(OUTPUT));
        String start = control(settings, ControlInput.Kind.SEQUENCE_START, DataType.INT32);
        String ready = control(settings, ControlInput.Kind.SEQUENCE_READY, DataType.INT32);
        SequenceInstance.Controls controls = new SequenceInstance.Controls(start, ready);
        long delayNanos = context.parameters()
                .duration(DELAY, TimeUnit.MILLISECONDS)
                .orElse(Duration.ZERO)
                .toNanos();
        return new Model() {
            @Override
            public ModelInstance newInstance(InstanceContext instance) {
                return new SequenceInstance(controls, delayNanos, nanoTime);
            }

            @Override
            public Optional<BackendTraits.Execution> execution() {
                return delayNanos > 0 ? Optional.of(BackendTraits.Execution.LONG) : Optional.empty();
            }
        };
    }

    private static void check(String role, String name, Optional<TensorSpec> spec) {
        if (spec.isEmpty() || spec.get().type() != DataType.INT32) {
            throw invalid(role + " '" + name + "': "
                    + spec.map(TensorSpec::toString).orElse("missing") + " (expected: INT32)");
        }
    }

    /** Returns the name of a control input, of the type that this backend reads. */
    private static String control(ModelSettings settings, ControlInput.Kind kind, DataType type) {
        List<ControlInput> controls =
                settings.sequenceBatching().map(batching -> batching.controls()).orElse(List.of());
        for (ControlInput control : controls) {
            if (control.kind() == kind && control.type() == type) {
                return control.name();
            }
        }
        throw invalid("sequence_batching: no control_input CONTROL_" + kind + " of " + type + " (expected: one)");
    }

    private static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
