package dev.nereid.examples.identity;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.InstanceContext;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import dev.nereid.spi.ModelInstance;
import java.util.Optional;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.function.LongSupplier;

/**
 * Loads models with {@code OUTPUT<i>} = {@code INPUT<i>}. Immutable.
 *
 * <p>Passing a tensor on takes no time, so direct execution on the submitting thread is safe. The instances of a model
 * with a delay have threads of their own, which may wait.
 */
final class IdentityBackend implements Backend {
    private static final BackendTraits TRAITS = BackendTraits.DEFAULT
            .withExecution(BackendTraits.Execution.SHORT)
            .withParallelInstances()
            .withClientMemory();

    private final LongSupplier nanoTime;

    IdentityBackend(LongSupplier nanoTime) {
        this.nanoTime = nanoTime;
    }

    @Override
    public BackendTraits traits() {
        return TRAITS;
    }

    @Override
    public Model load(ModelContext context) {
        IdentityModel model = IdentityModel.of(context);
        IdentityDelays.await(model.delays().creationNanos(), nanoTime, "load");
        AtomicInteger instances = new AtomicInteger();
        return new Model() {
            @Override
            public ModelInstance newInstance(InstanceContext context) {
                return new IdentityInstance(model, instances.getAndIncrement(), nanoTime);
            }

            @Override
            public Optional<BackendTraits.Execution> execution() {
                return model.delays().executionNanos() > 0
                        ? Optional.of(BackendTraits.Execution.LONG)
                        : Optional.empty();
            }
        };
    }
}
