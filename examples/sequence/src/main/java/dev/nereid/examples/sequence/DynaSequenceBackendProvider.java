package dev.nereid.examples.sequence;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;

/** Provider of the backend {@code dyna_sequence}. Immutable. */
public final class DynaSequenceBackendProvider implements BackendProvider {
    @Override
    public String name() {
        return "dyna_sequence";
    }

    @Override
    public Backend create(BackendContext context) {
        return new SumBackend(OldestSums::of, System::nanoTime);
    }
}
