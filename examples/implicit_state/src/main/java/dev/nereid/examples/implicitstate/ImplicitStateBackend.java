package dev.nereid.examples.implicitstate;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.ControlInput;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.SequenceBatching;
import dev.nereid.spi.StateSpec;
import dev.nereid.spi.TensorSpec;
import java.util.List;
import java.util.Optional;
import java.util.Set;
import java.util.stream.Collectors;

/** Loads models with one state, which requests use in a way that they name. Immutable. */
final class ImplicitStateBackend implements Backend {
    static final String INPUT = "INPUT";
    static final String TEST_CASE = "TEST_CASE";
    static final String OUTPUT = "OUTPUT";
    static final String INPUT_STATE = "INPUT_STATE";
    static final String OUTPUT_STATE = "OUTPUT_STATE";

    private static final Set<String> CONTROLS = Set.of("START", "END", "READY");

    private static final BackendTraits TRAITS =
            BackendTraits.DEFAULT.withExecution(BackendTraits.Execution.LONG).withParallelInstances();

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Model load(ModelContext context) {
        ModelSettings settings = context.settings();
        checkControls(settings);
        check("input", INPUT, settings.input(INPUT));
        check("input", TEST_CASE, settings.input(TEST_CASE));
        check("output", OUTPUT, settings.output(OUTPUT));
        boolean growable = settings.sequenceBatching()
                .flatMap(batching -> batching.state(OUTPUT_STATE))
                .filter(StateSpec::growableMemory)
                .isPresent();
        return _ -> new ImplicitStateInstance(settings.batches(), growable);
    }

    private static void checkControls(ModelSettings settings) {
        List<ControlInput> controls =
                settings.sequenceBatching().map(SequenceBatching::controls).orElse(List.of());
        Set<String> names = controls.stream().map(ControlInput::name).collect(Collectors.toSet());
        if (!names.equals(CONTROLS)) {
            throw invalid("'START', 'END, and 'READY' must be configured as the control inputs (the model has: " + names
                    + ")");
        }
    }

    private static void check(String role, String name, Optional<TensorSpec> spec) {
        if (spec.isEmpty() || spec.get().type() != DataType.INT32) {
            throw invalid(role + " '" + name + "': "
                    + spec.map(TensorSpec::toString).orElse("missing") + " (expected: INT32)");
        }
    }

    private static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
