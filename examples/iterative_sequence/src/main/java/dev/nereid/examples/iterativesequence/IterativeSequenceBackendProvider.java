package dev.nereid.examples.iterativesequence;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;

/** Provider of the backend {@code iterative_sequence}. Immutable. */
public final class IterativeSequenceBackendProvider implements BackendProvider {
    @Override
    public String name() {
        return "iterative_sequence";
    }

    @Override
    public Backend create(BackendContext context) {
        return new IterativeSequenceBackend(System::nanoTime);
    }
}
