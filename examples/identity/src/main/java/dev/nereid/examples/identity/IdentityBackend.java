package dev.nereid.examples.identity;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendException;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelContext;
import java.util.function.LongSupplier;

/**
 * Loads models that answer {@code OUTPUT<i>} = {@code INPUT<i>}. Immutable.
 *
 * <p>Passing a tensor on takes no time at all, but a model may ask for a delay, and how executions are run is one
 * answer for the whole backend: so every instance gets a thread of its own that may wait.
 */
final class IdentityBackend implements Backend {
    private static final BackendTraits TRAITS = BackendTraits.DEFAULT
            .withExecution(BackendTraits.Execution.LONG)
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
    public Model load(ModelContext context) throws BackendException {
        IdentityModel model = IdentityModel.of(context.settings());
        return ignored -> new IdentityInstance(model, nanoTime);
    }
}
