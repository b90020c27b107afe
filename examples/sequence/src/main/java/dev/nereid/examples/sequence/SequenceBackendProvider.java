package dev.nereid.examples.sequence;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;

/** Provider of the backend {@code sequence}. Immutable. */
public final class SequenceBackendProvider implements BackendProvider {
    @Override
    public String name() {
        return "sequence";
    }

    @Override
    public Backend create(BackendContext context) {
        return new SumBackend(DirectSums::of, System::nanoTime);
    }
}
