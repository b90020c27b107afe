package dev.nereid.examples.implicitstate;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;

/** Provider of the backend {@code implicit_state}. Immutable. */
public final class ImplicitStateBackendProvider implements BackendProvider {
    @Override
    public String name() {
        return "implicit_state";
    }

    @Override
    public Backend create(BackendContext context) {
        return new ImplicitStateBackend();
    }
}
