package dev.nereid.examples.repeat;

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
import java.util.function.Function;
import java.util.function.LongSupplier;

/**
 * Loads models that send one response for each element of {@code IN}. A model that is not decoupled sends that of the
 * first element alone. Immutable.
 */
final class RepeatBackend implements Backend {
    static final String IN = "IN";
    static final String DELAY = "DELAY";
    static final String WAIT = "WAIT";
    static final String OUT = "OUT";
    static final String IDX = "IDX";

    /** A request may contain a wait; so every instance has a thread of its own. */
    private static final BackendTraits TRAITS =
            BackendTraits.DEFAULT.withExecution(BackendTraits.Execution.LONG).withParallelInstances();

    private final Function<ModelContext, Timer> timers;
    private final LongSupplier nanoTime;

    /** Creates a backend. */
    RepeatBackend(Function<ModelContext, Timer> timers, LongSupplier nanoTime) {
        this.timers = timers;
        this.nanoTime = nanoTime;
    }

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Model load(ModelContext context) {
        ModelSettings settings = context.settings();
        check(settings);
        Timer timer = timers.apply(context);
        return _ -> new RepeatInstance(settings.decoupled(), timer, nanoTime);
    }

    static void check(ModelSettings settings) {
        if (settings.batches()) {
            throw invalid("repeat backend only supports models with max_batch_size == 0 (model '" + settings.name()
                    + "' has: " + settings.maxBatchSize() + ")");
        }
        check("input '" + IN + "'", settings.input(IN), DataType.INT32);
        check("input '" + DELAY + "'", settings.input(DELAY), DataType.UINT32);
        check("input '" + WAIT + "'", settings.input(WAIT), DataType.UINT32);
        check("output '" + OUT + "'", settings.output(OUT), DataType.INT32);
        check("output '" + IDX + "'", settings.output(IDX), DataType.UINT32);
    }

    private static void check(String role, Optional<TensorSpec> spec, DataType type) {
        if (spec.isEmpty() || spec.get().type() != type) {
            throw invalid(role + ": " + spec.map(TensorSpec::toString).orElse("missing") + " (expected: " + type + ")");
        }
    }

    private static BackendException invalid(String message) {
        return new BackendException(ErrorCode.INVALID_ARGUMENT, message);
    }
}
