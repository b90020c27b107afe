package dev.nereid.examples.charlm;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;

/** Provider of the backend {@code char_lm}. Immutable. */
public final class CharLmBackendProvider implements BackendProvider {
    @Override
    public String name() {
        return "char_lm";
    }

    @Override
    public Backend create(BackendContext context) {
        return new CharLmBackend();
    }
}
