package dev.nereid.backend.pytorch;

import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendContext;
import dev.nereid.spi.BackendProvider;
import java.util.Set;

/** Entry point of the plugin: creates the PyTorch backend. Immutable. */
public final class PyTorchBackendProvider implements BackendProvider {
    /** Creates the provider; called by the service loader. */
    public PyTorchBackendProvider() {}

    @Override
    public String name() {
        return "pytorch";
    }

    @Override
    public Set<String> platforms() {
        return Set.of("pytorch_libtorch");
    }

    @Override
    public Backend create(BackendContext context) {
        return PyTorchBackend.open(context);
    }
}
