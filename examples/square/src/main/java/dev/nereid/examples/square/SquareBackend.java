package dev.nereid.examples.square;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.util.Optional;
import java.util.function.LongSupplier;

/** Loads models that send n responses to a request with {@code IN} = n. Immutable. */
final class SquareBackend implements Backend {
    static final String IN = "IN";
    static final String OUT = "OUT";

    /** Many responses take long; so every instance has a thread of its own. */
    private static final BackendTraits TRAITS =
            BackendTraits.DEFAULT.withExecution(BackendTraits.Execution.LONG).withParallelInstances();

    private final LongSupplier nanoTime;

    SquareBackend(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Model load(ModelContext context) {
        check(context.settings());
        SquareModel model = SquareModel.of(context);
        return _ -> new SquareInstance(model, nanoTime);
    }

    static void check(ModelSettings settings) {
        check("input '" + IN + "'", settings.input(IN));
        check("output '" + OUT + "'", settings.output(OUT));
        if (settings.inputs().size() != 1 || settings.outputs().size() != 1) {
            throw invalid(
                    "model '" + settings.name() + "': (expected: one input '" + IN + "' and one output '" + OUT + "')");
        }
    }

    private static void check(String role, Optional<TensorSpec> spec) {
        if (spec.isEmpty() || spec.get().type() != DataType.INT32) {
            throw invalid(role + ": " + spec.map(TensorSpec::toString).orElse("missing") + " (expected: INT32)");
        }
    }

    private static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
