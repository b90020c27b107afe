package dev.nereid.examples.iterativesequence;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.LongSupplier;

/** Loads models that count down from {@code INPUT}, one number in each execution of a request. Immutable. */
final class IterativeSequenceBackend implements Backend {
    static final String INPUT = "INPUT";
    static final String OUTPUT = "OUTPUT";

    private static final String DELAY = "execute_delay_ms";
    private static final Duration DEFAULT_DELAY = Duration.ofMillis(500);
    private static final BackendTraits TRAITS =
            BackendTraits.DEFAULT.withExecution(BackendTraits.Execution.LONG).withParallelInstances();

    private final LongSupplier nanoTime;

    IterativeSequenceBackend(LongSupplier nanoTime) {
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
        CountdownModel model = CountdownModel.of(
                settings,
                context.parameters()
                        .duration(DELAY, TimeUnit.MILLISECONDS)
                        .orElse(DEFAULT_DELAY)
                        .toNanos());
        return _ -> new IterativeSequenceInstance(model, nanoTime);
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
