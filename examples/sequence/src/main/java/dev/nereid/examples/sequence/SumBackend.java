package dev.nereid.examples.sequence;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.DataType;
import dev.nereid.spi.ErrorCode;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import dev.nereid.spi.ModelSettings;
import dev.nereid.spi.TensorSpec;
import java.time.Duration;
import java.util.Optional;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.function.LongSupplier;
import java.util.function.Supplier;

/**
 * Loads models that add up {@code INPUT} for each sequence. Immutable.
 *
 * <p>An addition takes no time, so direct execution on the submitting thread is safe. The instances of a model with a
 * delay have threads of their own, which may wait.
 */
final class SumBackend implements Backend {
    private static final String DELAY = "execute_delay_ms";
    private static final BackendTraits TRAITS =
            BackendTraits.DEFAULT.withExecution(BackendTraits.Execution.SHORT).withParallelInstances();

    private final Function<ModelSettings, Supplier<SequenceSums>> strategy;
    private final LongSupplier nanoTime;

    /** Makes a backend with the sums of a strategy: a source of them for each model. */
    SumBackend(Function<ModelSettings, Supplier<SequenceSums>> strategy, LongSupplier nanoTime) {
        this.strategy = strategy;
        this.nanoTime = nanoTime;
    }

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Model load(ModelContext context) {
        ModelSettings settings = context.settings();
        check("input", Sums.INPUT, settings.input(Sums.INPUT));
        check("output", Sums.OUTPUT, settings.output(Sums.OUTPUT));
        Supplier<SequenceSums> sums = strategy.apply(settings);
        long delayNanos = context.parameters()
                .duration(DELAY, TimeUnit.MILLISECONDS)
                .orElse(Duration.ZERO)
                .toNanos();
        return new Model() {
            @Override
            public ModelInstance newInstance(InstanceContext instance) {
                return new SumInstance(sums.get(), delayNanos, nanoTime);
            }

            @Override
            public Optional<BackendTraits.Execution> execution() {
                return delayNanos > 0 ? Optional.of(BackendTraits.Execution.LONG) : Optional.empty();
            }
        };
    }

    private static void check(String role, String name, Optional<TensorSpec> spec) {
        if (spec.isEmpty() || spec.get().type() != DataType.INT32) {
            throw new BackendException(
                    ErrorCode.INVALID_ARGUMENT,
                    role + " '" + name + "': " + spec.map(TensorSpec::toString).orElse("missing")
                            + " (expected: INT32)");
        }
    }
}
