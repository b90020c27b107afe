package dev.nereid.examples.identity;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;

/** Provider of the backend {@code identity}. Immutable. */
public final class IdentityBackendProvider implements BackendProvider {
    @Override
    public String name() {
        return "identity";
    }

    @Override
    public Backend create(BackendContext context) {
        return new IdentityBackend(System::nanoTime);
    }
}
