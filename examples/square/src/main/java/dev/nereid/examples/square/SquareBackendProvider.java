package dev.nereid.examples.square;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;

/** Provider of the backend {@code square}. Immutable. */
public final class SquareBackendProvider implements BackendProvider {
    @Override
    public String name() {
        return "square";
    }

    @Override
    public Backend create(BackendContext context) {
        return new SquareBackend(System::nanoTime);
    }
}
