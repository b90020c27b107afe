package dev.nereid.plugin;

import dev.nereid.plugin.boundary.PluginBoundary;
import dev.nereid.spi.Backend;
import dev.nereid.spi.BackendTraits;
import dev.nereid.spi.Model;
import dev.nereid.spi.ModelCompletion;
import dev.nereid.spi.ModelContext;
import java.util.Optional;

/**
 * Forwards to a plugin's backend through the plugin boundary. Immutable; as safe for concurrent use as the backend.
 */
final class IsolatedBackend implements Backend {
    private final Backend backend;
    private final PluginBoundary boundary;
    private final BackendTraits traits;

    /** Wraps a backend and reads its traits. */
    IsolatedBackend(Backend backend, PluginBoundary boundary) {
        this.backend = backend;
        this.boundary = boundary;
        traits = boundary.invoke("Backend.traits", backend::traits);
    }

    @Override
    public BackendTraits traits() {
        return traits;
    }

    @Override
    public Optional<ModelCompletion> complete(ModelContext context) {
        return boundary.invoke("Backend.complete", () -> backend.complete(context));
    }

    @Override
    public Model load(ModelContext context) {
        Model model = boundary.invoke("Backend.load", () -> backend.load(context));
        boolean isolated = false;
        try {
            IsolatedModel result = new IsolatedModel(model, boundary);
            isolated = true;
            return result;
        } finally {
            if (!isolated) {
                boundary.close("Model.close", model::close);
            }
        }
    }

    @Override
    public void close() {
        boundary.close("Backend.close", backend::close);
    }
}
